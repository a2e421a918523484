package routing

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
)

// tells is a model whose streams know whether more is buffered: the first so many times.
type tells struct {
	*model
	yes int
}

func (m *tells) Stream(ctx context.Context, call providers.Call) (providers.Stream, error) {
	s, err := m.model.Stream(ctx, call)
	return &telling{s, m}, err
}

type telling struct {
	providers.Stream
	m *tells
}

func (s *telling) Buffered() bool {
	s.m.yes--
	return s.m.yes >= 0
}

func TestBuffered(t *testing.T) {
	long := []step{role, role, say("one "), say("two "), say("three"), stop, end}
	l := newLab(t, scripted(long))
	for _, c := range []struct {
		name   string
		client providers.Provider
		yes    int // of the first chunks and the end
	}{
		{"what was held counts, what comes isn't known", scripted(long), 3},
		{"the stream says", &tells{scripted(long), 2}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.settings.Candidates[0].Client = c.client
			a := l.router().Answer(t.Context(), request())
			defer a.Close()
			for i := range 7 {
				require.Equal(t, i < c.yes, a.Buffered(), "before chunk %d", i)
				_, err := a.Next()
				if i == 6 {
					require.ErrorIs(t, err, io.EOF)
				}
			}
			require.False(t, a.Buffered())
		})
	}
	require.True(t, replay(request(), Trace{}, "stored").Buffered())
	require.False(t, NewAnswer(Trace{}, &unknowing{}).Buffered(), "a source that doesn't know")
}

type unknowing struct{}

func (*unknowing) Next() (providers.Chunk, error) { return providers.Chunk{}, io.EOF }
func (*unknowing) Close()                         {}
