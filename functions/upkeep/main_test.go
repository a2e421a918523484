package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/functions"
	"holdfast/internal/app"
	"holdfast/internal/config"
)

func TestEvents(t *testing.T) {
	c, _, err := config.Load(t.Context(), config.Source{})
	require.NoError(t, err)
	a, err := app.Open(t.Context(), c, app.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close(t.Context())) }()
	u := upkeep{functions.Function{App: a}}
	for _, tt := range []struct{ name, event, report, err string }{
		{"a schedule's own", `{"version":"0","source":"aws.scheduler","detail-type":"Scheduled Event","detail":"{}"}`, `{"action":"expire","expired":0}`, ""},
		{"asked for", `{"action":"expire"}`, `{"action":"expire","expired":0}`, ""},
		{"migrate where nothing is named", `{"action":"migrate"}`, `{"action":"migrate","expired":0}`, ""},
		{"purge without a database", `{"action":"purge","tenant":"t"}`, "", "HOLDFAST_DATABASE_URL is not set"},
		{"forget without a database", `{"action":"forget","tenant":"t","question":"q"}`, "", "HOLDFAST_DATABASE_URL is not set"},
		{"forget for no time", `{"action":"forget","tenant":"t","question":"q","for":"soon"}`, "", "for is a time"},
		{"forget a user", `{"action":"forget","tenant":"t","user":"u"}`, "", "takes no user"},
		{"unknown", `{"action":"drop everything"}`, "", `unknown action "drop everything"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var event task
			require.NoError(t, json.Unmarshal([]byte(tt.event), &event))
			r, err := u.handle(t.Context(), event)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			got, err := json.Marshal(r)
			require.NoError(t, err)
			require.JSONEq(t, tt.report, string(got))
		})
	}
}
