package routing

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers"
)

// picky is a model whose dialect can't carry what is asked.
type picky struct {
	*model
	refusal *providers.Error
}

func (p picky) Check(providers.Call) error { return p.refusal }

func TestInabilityOfADialectIsNamed(t *testing.T) {
	seed := &providers.Error{Kind: providers.KindUnsupported, Code: "unsupported", Param: "seed", Message: "This model's provider does not take seed."}
	tests := []struct {
		name    string
		change  func(*lab)
		code    string
		param   string
		message string
	}{
		{"the field, of the first that said so", func(*lab) {}, "unsupported", "seed", seed.Message},
		{"what the configuration says, where it says more", func(l *lab) {
			for _, id := range []string{"a", "b"} {
				l.candidate(id).Window = 5
			}
		}, "context_length_exceeded", "messages", "The request is longer than the context window of every configured model: shorten it. The request has about 10 tokens."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, scripted(answer), scripted(answer))
			other := *seed
			other.Param, other.Message = "logprobs", "This model's provider does not take logprobs."
			l.candidate("a").Client = picky{l.models["a"], seed}
			l.candidate("b").Client = picky{l.models["b"], &other}
			test.change(l)
			got := read(l.router().Answer(context.Background(), request()))
			require.NotNil(t, got.Failure)
			require.Equal(t, 400, got.Failure.Status)
			require.Equal(t, test.code, got.Failure.Code)
			require.Equal(t, test.param, got.Failure.Param)
			require.Equal(t, test.message, got.Failure.Message)
			require.Zero(t, l.models["a"].calls+l.models["b"].calls)
		})
	}
}
