package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/routing"
)

// What CloudWatch demands of the embedded metric format, of every event with a block: the named fields stand beside
// it, metrics as numbers, dimensions as texts that aren't empty.
func TestMetricsNameFieldsOfTheEvent(t *testing.T) {
	drawn := routing.Trace{Tier: routing.TierModel, Drawn: "a", Share: 0.7, Attempts: []routing.Attempt{{Candidate: "a", Outcome: "ok"}}}
	priced := routing.Trace{Tier: routing.TierModel, Attempts: []routing.Attempt{{Candidate: "a", Outcome: "ok", Cost: &routing.Cost{}}}}
	for _, tt := range []struct {
		name   string
		trace  routing.Trace
		shadow *Shadow
		want   []string // DIMENSION.METRIC
	}{
		{"a draw", drawn, nil, []string{"tier.ms", "tier.calls", "drawn.share"}},
		{"a price", priced, nil, []string{"tier.ms", "tier.calls", "tier.cost_usd"}},
		{"no draw", routing.Trace{Tier: routing.TierFallback}, nil, []string{"tier.ms", "tier.calls"}},
		{"a shadow", routing.Trace{Tier: routing.TierModel}, &Shadow{Rule: "exact"}, []string{"tier.ms", "tier.calls", "shadow_rule.shadow_agree", "shadow_rule.shadow_overlap"}},
		{"a shadow of nothing", routing.Trace{Tier: routing.TierModel}, &Shadow{Rule: ShadowMiss}, []string{"tier.ms", "tier.calls"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := event(t, Request{Tenant: "team-a", Metrics: true, Complete: true, Trace: tt.trace, Shadow: tt.shadow, Duration: time.Second})
			raw, err := json.Marshal(got["_aws"])
			require.NoError(t, err)
			var block metricBlock
			require.NoError(t, json.Unmarshal(raw, &block))
			require.WithinDuration(t, time.Now(), time.UnixMilli(block.Timestamp), time.Minute)
			var named []string
			for _, d := range block.CloudWatchMetrics {
				require.Equal(t, "Holdfast", d.Namespace)
				dimension := d.Dimensions[0][0]
				require.NotEmpty(t, got[dimension].(string))
				require.NotEqual(t, "tenant", dimension)
				for _, m := range d.Metrics {
					require.IsType(t, 0.0, got[m.Name])
					named = append(named, dimension+"."+m.Name)
				}
			}
			require.Equal(t, tt.want, named)
		})
	}
}

func TestNoMetrics(t *testing.T) {
	require.NotContains(t, event(t, Request{Metrics: true, Failure: &routing.Failure{Status: 404}}), "_aws", "nothing answered")
	require.NotContains(t, event(t, Request{Trace: routing.Trace{Tier: routing.TierModel}}), "_aws", "not asked for")
	var out bytes.Buffer
	Log(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), Request{Metrics: true, Trace: routing.Trace{Tier: routing.TierModel}})
	require.Contains(t, out.String(), `_aws="JSON only"`)
}
