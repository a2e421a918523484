package telemetry

import (
	"log/slog"
	"time"
)

// namespace is where CloudWatch keeps the metrics.
const namespace = "Holdfast"

// metricBlock is CloudWatch's embedded metric format: it names fields of the event beside it, of which CloudWatch then
// makes metrics. Each combination of a dimension's values is a metric of its own and costs money, so that there are
// few: never the tenant.
type metricBlock struct {
	Timestamp         int64             `json:"Timestamp"` // Unix, in milliseconds
	CloudWatchMetrics []metricDirective `json:"CloudWatchMetrics"`
}

type metricDirective struct {
	Namespace  string         `json:"Namespace"`
	Dimensions [][]string     `json:"Dimensions"`
	Metrics    []metricOfUnit `json:"Metrics"`
}

type metricOfUnit struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// String is what a text log shows in the block's place; CloudWatch reads it in JSON only.
func (metricBlock) String() string { return "JSON only" }

// metrics is the block of a request: how long it took, how many calls it needed and what they cost, by tier; and by who
// was drawn, the share that the weights gave him, whose count is the split that was observed; and by rule, whether what the cache had
// agrees with a fresh answer. False where nothing answered.
func metrics(r Request, now time.Time) (slog.Attr, bool) {
	if r.Trace.Tier == "" {
		return slog.Attr{}, false
	}
	of := []metricOfUnit{{"ms", "Milliseconds"}, {"calls", "Count"}}
	if r.Trace.Cost() != nil {
		of = append(of, metricOfUnit{"cost_usd", "None"})
	}
	block := metricBlock{now.UnixMilli(), []metricDirective{{namespace, [][]string{{"tier"}}, of}}}
	if r.Trace.Drawn != "" {
		block.CloudWatchMetrics = append(block.CloudWatchMetrics, metricDirective{
			namespace, [][]string{{"drawn"}}, []metricOfUnit{{"share", "None"}},
		})
	}
	if s := r.Shadow; s != nil && s.Rule != ShadowMiss {
		block.CloudWatchMetrics = append(block.CloudWatchMetrics, metricDirective{
			namespace, [][]string{{"shadow_rule"}}, []metricOfUnit{{"shadow_agree", "None"}, {"shadow_overlap", "None"}},
		})
	}
	return slog.Any("_aws", block), true
}
