package app

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// table creates a table on the DynamoDB API that the tests are given.
func table(t *testing.T) string {
	t.Helper()
	endpoint := os.Getenv("HOLDFAST_TEST_DYNAMODB_URL")
	if endpoint == "" {
		if os.Getenv("HOLDFAST_TEST_REQUIRE_PARTS") != "" {
			t.Fatal("HOLDFAST_TEST_DYNAMODB_URL is not set")
		}
		t.Skip("needs a DynamoDB API: make test brings one up and sets HOLDFAST_TEST_DYNAMODB_URL")
	}
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	name := fmt.Sprintf("app-%d", time.Now().UnixNano())
	require.NoError(t, Migrate(t.Context(), Places{Table: name}, func(string) {}))
	return name
}

// database gives a migrated database on the Postgres that the tests are given.
func database(t *testing.T) string {
	t.Helper()
	url := os.Getenv("HOLDFAST_TEST_DATABASE_URL")
	if url == "" {
		if os.Getenv("HOLDFAST_TEST_REQUIRE_PARTS") != "" {
			t.Fatal("HOLDFAST_TEST_DATABASE_URL is not set")
		}
		t.Skip("needs Postgres with pgvector: make test brings one up and sets HOLDFAST_TEST_DATABASE_URL")
	}
	require.NoError(t, Migrate(t.Context(), Places{DatabaseURL: url}, func(string) {}))
	return url
}

// twins are two instances of one fleet: the same upstreams, one table, one database.
func twins(t *testing.T, more string, places Places, plans ...[]providertest.Behaviour) (*lab, *lab) {
	first := &lab{t: t, log: &locked{}}
	for _, plan := range plans {
		first.up = append(first.up, providertest.Start(t, providertest.OpenAI, plan...))
	}
	second := &lab{t: t, log: &locked{}, up: first.up}
	for _, l := range []*lab{first, second} {
		l.start(yamlOf(more, first.up), Options{Places: places})
	}
	return first, second
}

// What one process has learnt of a model, the other knows; after the open time the fleet makes exactly one trial.
func TestFleetSharesItsBreakers(t *testing.T) {
	first, second := twins(t, "breaker: {open_duration: 3s, max_open_duration: 3s}\n", Places{Table: table(t)}, []providertest.Behaviour{down()}, healthy())
	a := first.up[0]
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("first:\n%s\nsecond:\n%s", first.log, second.log)
		}
	})
	first.ask(false, "one")
	first.ask(false, "two")
	require.Equal(t, 2, a.Calls())
	require.Eventually(t, func() bool { // its copy of the closed breaker may be 2 s old
		calls := a.Calls()
		got := second.ask(false, "three")
		return got.outcomes()[0] == "a:-breaker_open" && a.Calls() == calls
	}, 2900*time.Millisecond, 100*time.Millisecond)

	a.Play(providertest.Ends(providertest.EndHang)) // a trial that nobody settles for a while
	before := a.Calls()
	require.Eventually(t, func() bool {
		var all sync.WaitGroup
		for i := range 10 {
			for _, l := range []*lab{first, second} {
				all.Go(func() { l.ask(i%2 == 0, "trial") })
			}
		}
		all.Wait()
		return a.Calls() > before
	}, 8*time.Second, 100*time.Millisecond)
	require.Equal(t, 1, a.Seen().MaxOpen, "two trials at once")
	require.Equal(t, before+1, a.Calls(), "more than one trial")
	a.Play(providertest.Says("recovered"))
	require.Eventually(t, func() bool { return second.ask(false, "after").meta.Candidate == "a" }, 8*time.Second, 100*time.Millisecond)
}

func TestFleetSharesItsCache(t *testing.T) {
	url := database(t)
	question := fmt.Sprintf("How do bridges of type %d carry heavy loads?", time.Now().UnixNano()%1e9)
	first, second := twins(t, "", Places{DatabaseURL: url}, []providertest.Behaviour{providertest.Says("As ", "ever.")})
	require.Equal(t, "model", first.ask(true, question).meta.Tier)
	require.NoError(t, first.app.after.wait(t.Context()))
	first.up[0].Play(down())
	got := second.ask(true, question)
	require.Equal(t, "cache", got.meta.Tier)
	require.Equal(t, "As ever.", got.text)
	_, err := first.app.Upkeep(t.Context())
	require.NoError(t, err)
}

// Stores that are away never refuse a call, whether nothing listens there or nobody answers.
func TestStoresAway(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	for name, address := range map[string]string{"refused": "127.0.0.1:1", "silent": silent(t)} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://"+address)
			places := Places{Table: "nowhere", DatabaseURL: "postgres://u:pw-secret@" + address + "/x?sslmode=disable"}
			l, _ := twins(t, "", places, []providertest.Behaviour{{}}, healthy())
			for i := range 5 {
				require.Equal(t, "a", l.ask(i%2 == 0, "How do bridges carry heavy loads?").meta.Candidate)
			}
			l.up[0].Play(down())
			l.up[1].Play(down())
			require.Equal(t, "fallback", l.ask(false, "q", "Holdfast-Deadline-Ms", "3000").meta.Tier)
			l.ask(false, "q", "Holdfast-Deadline-Ms", "3000")
			require.Contains(t, l.ask(false, "q", "Holdfast-Deadline-Ms", "3000").outcomes(), "a:-breaker_open", "the local breaker")
			require.NoError(t, l.app.after.wait(t.Context()))
			require.NotContains(t, l.log.String(), "pw-secret")
		})
	}
}
