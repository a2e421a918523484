package breaker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	model = "model-a"
	lease = 10 * time.Second
)

var (
	failed = Outcome{Class: Failure, Why: "server_error"}
	passed = Outcome{Class: Success}
)

// pass lets virtual time go by.
func pass(d time.Duration) { <-time.After(d) }

func gateOn(t testing.TB, s Settings, store Store) *Breakers {
	g, _ := logged(t, s, store)
	return g
}

// logged is a gate and what it logs.
func logged(t testing.TB, s Settings, store Store) (*Breakers, *lines) {
	l := &lines{}
	g := New(s, store, slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { require.NoError(t, g.Close(context.Background())) })
	return g, l
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

func enter(t testing.TB, g Gate) Permit {
	t.Helper()
	p, err := g.Enter(t.Context(), model, lease)
	require.NoError(t, err)
	return p
}

// enterAlone enters while the store doesn't answer: the trial is this process's own once it holds the store for dead.
func enterAlone(t testing.TB, g Gate) Permit {
	t.Helper()
	for range missesToAway - 1 {
		if p, err := g.Enter(t.Context(), model, lease); err == nil {
			return p
		}
	}
	return enter(t, g)
}

func refused(t testing.TB, g Gate) *Refusal {
	t.Helper()
	p, err := g.Enter(t.Context(), model, lease)
	require.Nil(t, p)
	var r *Refusal
	require.ErrorAs(t, err, &r)
	return r
}

func call(t testing.TB, g Gate, outcomes ...Outcome) {
	t.Helper()
	for _, o := range outcomes {
		enter(t, g).Done(o)
	}
}

func status(t testing.TB, g Gate) Status {
	t.Helper()
	return g.Snapshot(t.Context(), model)[0]
}

// enterAll asks every gate n times at once and gives the permits.
func enterAll(t testing.TB, n int, gates ...Gate) []Permit {
	t.Helper()
	var mu sync.Mutex
	var permits []Permit
	var wg sync.WaitGroup
	for _, g := range gates {
		for range n {
			wg.Go(func() {
				p, err := g.Enter(t.Context(), model, lease)
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				permits = append(permits, p)
			})
		}
	}
	wg.Wait()
	return permits
}

// faulty is a store that can go away, and counts what it is asked.
type faulty struct {
	Store
	mu             sync.Mutex
	loads, updates int
	err            error         // every call fails
	hang           bool          // every call lasts until its deadline
	delay          time.Duration // before the call
	lose           bool          // changes are made, but their answers are lost
	keys           int           // of all loads
}

func (f *faulty) set(change func(*faulty)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faulty) counts() (loads, updates int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loads, f.updates
}

func (f *faulty) trouble(ctx context.Context) error {
	f.mu.Lock()
	err, hang, delay := f.err, f.hang, f.delay
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func (f *faulty) Load(ctx context.Context, ids ...string) (map[string]Record, error) {
	f.set(func(f *faulty) { f.loads++; f.keys += len(ids) })
	if err := f.trouble(ctx); err != nil {
		return nil, err
	}
	return f.Store.Load(ctx, ids...)
}

func (f *faulty) Look(ctx context.Context, id string) (Record, error) {
	f.set(func(f *faulty) { f.loads++; f.keys++ })
	if err := f.trouble(ctx); err != nil {
		return Record{}, err
	}
	return f.Store.Look(ctx, id)
}

func (f *faulty) Update(ctx context.Context, id string, c Change) (Record, bool, error) {
	f.set(func(f *faulty) { f.updates++ })
	if err := f.trouble(ctx); err != nil {
		return Record{}, false, err
	}
	r, applied, err := f.Store.Update(ctx, id, c)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lose {
		return Record{}, false, context.DeadlineExceeded
	}
	return r, applied, err
}

// dynamoClient gives a client of the DynamoDB API that the environment names.
func dynamoClient(t testing.TB) *dynamodb.Client {
	t.Helper()
	url := os.Getenv("HOLDFAST_TEST_DYNAMODB_URL")
	if url == "" {
		if os.Getenv("HOLDFAST_TEST_REQUIRE_PARTS") == "1" {
			t.Fatal("HOLDFAST_TEST_DYNAMODB_URL is not set")
		}
		t.Skip("HOLDFAST_TEST_DYNAMODB_URL is not set: no DynamoDB API to test against")
	}
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	client := NewClient(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &url })
	t.Cleanup(client.Options().HTTPClient.(*http.Client).CloseIdleConnections)
	return client
}

// dynamoTable gives a store in a table of its own.
func dynamoTable(t testing.TB) (*Dynamo, *dynamodb.Client, string) {
	t.Helper()
	client := dynamoClient(t)
	table := "breaker-" + string([]byte{byte('a' + rand.N(26)), byte('a' + rand.N(26))}) + time.Now().Format("150405.000000")
	require.NoError(t, CreateTable(t.Context(), client, table))
	t.Cleanup(func() {
		_, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
		require.NoError(t, err)
	})
	return NewDynamo(client, table, ""), client, table
}
