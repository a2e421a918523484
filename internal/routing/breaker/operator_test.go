package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStatusOfARecord(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	in := func(ms int64) (int64, time.Time) {
		return 1_000_000 + ms, now.Add(time.Duration(ms) * time.Millisecond)
	}
	later, until := in(5000)
	earlier, _ := in(-1)
	for _, tc := range []struct {
		name   string
		record Record
		want   Status
	}{
		{"unknown", Record{}, Status{}},
		{"closed", Record{Gen: 3, Why: "timeout"}, Status{Generation: 3, Why: "timeout"}},
		{"open", Record{State: Open, Gen: 1, OpenUntil: later, OpenFor: time.Second}, Status{State: Open, Generation: 1, Until: until}},
		{"cooling", Record{State: Open, Gen: 1, OpenUntil: later}, Status{State: Open, Cooling: true, Generation: 1, Until: until}},
		{"half-open", Record{State: HalfOpen, Gen: 1, OpenUntil: earlier, OpenFor: 1}, Status{State: HalfOpen, Generation: 1}},
		{"forced open", Record{State: ForcedOpen, Gen: 2, OpenUntil: later}, Status{State: ForcedOpen, Generation: 2, Until: until}},
		{"without an end", Record{State: ForcedClosed, Gen: 2}, Status{State: ForcedClosed, Generation: 2}},
		{"whose end is over", Record{State: ForcedOpen, Gen: 2, OpenUntil: earlier}, Status{State: Closed, Generation: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Candidate = model
			require.Equal(t, tc.want, tc.record.Status(model, now))
		})
	}
}

func TestOperatorsReadIsConsistent(t *testing.T) {
	api := &scripted{} // refuses any other read
	got, err := NewDynamo(api, "t", "").Read(t.Context(), "a", "b")
	require.NoError(t, err)
	require.Equal(t, Open, got["b"].State)
	require.Equal(t, 2, api.gets)
}
