package breaker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func TestCreateTableMayBeRepeated(t *testing.T) {
	_, client, table := dynamoTable(t)
	require.NoError(t, CreateTable(t.Context(), client, table))
}

func TestItemHasTheNamesOfTheProtocol(t *testing.T) {
	_, client, table := dynamoTable(t)
	store := NewDynamo(client, table, "blue")
	for _, c := range []Change{
		{Op: Trip, Now: 1_000_000, Until: 1_030_000, OpenFor: 30 * time.Second, Opens: 1, Why: "timeout"},
		{Op: Acquire, Gen: 1, Now: 1_030_000, Until: 1_045_000, Holder: "x"},
	} {
		_, applied, err := store.Update(t.Context(), "m.1", c)
		require.NoError(t, err)
		require.True(t, applied)
	}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"pk": text("brk#blue#m.1"), "sk": text("state")},
	})
	require.NoError(t, err)
	require.Equal(t, map[string]types.AttributeValue{
		"pk": text("brk#blue#m.1"), "sk": text("state"), "st": text("H"), "g": number(1), "ou": number(1_030_000),
		"od": number(30_000), "oc": number(1), "lt": number(1), "lo": text("x"), "lu": number(1_045_000),
		"ps": number(0), "why": text("timeout"), "ua": number(1_030_000), "v": number(1),
		"x": number(1030 + 30*24*3600),
	}, out.Item)

	for _, c := range []Change{
		{Op: Force, State: ForcedClosed, Now: 2_000_000, Until: 2_000_000, Why: "drill"},
		{Op: Suspect, Gen: 2, Now: 2_000_000},
		{Op: Ticket, Gen: 2, Window: Window{Start: 2_000_000, Tickets: 20}},
		{Op: Count, Gen: 2, Window: Window{Start: 2_000_000, OK: 1, Slow: 1}},
		{Op: Suspect, Gen: 2, Now: 3_000_000, Window: Window{Start: 2_000_000, AfterCalm: true}},
		{Op: Force, State: ForcedOpen, Now: 4_000_000, Why: "drill"},
	} {
		_, applied, err := store.Update(t.Context(), "m.1", c)
		require.NoError(t, err)
		require.True(t, applied, "%+v", c)
	}
	out, err = client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"pk": text("brk#blue#m.1"), "sk": text("state")},
	})
	require.NoError(t, err)
	zero := number(0)
	require.Equal(t, map[string]types.AttributeValue{
		"pk": text("brk#blue#m.1"), "sk": text("state"), "st": text("FO"), "g": number(3), "ou": zero, "od": zero,
		"oc": zero, "lt": number(1), "ps": zero, "why": text("drill"), "ua": number(4_000_000), "v": number(1),
		"w": zero, "n": zero, "f": zero, "k": zero, "sl": zero, "cm": zero,
	}, out.Item, "no x: an order without an end doesn't expire")
}

// The real thing: two processes over one table, in real time. Rounds in which this machine was so slow that a
// process held the store for dead prove nothing, and are repeated.
func TestTwoProcessesOverDynamo(t *testing.T) {
	store, _, _ := dynamoTable(t)
	s := Settings{OpenDuration: time.Millisecond, MaxOpenDuration: time.Millisecond}
	gates := []Gate{gateOn(t, s, store), gateOn(t, s, store)}
	dead := func() bool { return gates[0].(*Breakers).link.dead() || gates[1].(*Breakers).link.dead() }
	call(t, gates[0], failed, failed)
	var trial Permit
	for range 500 {
		permits := enterAll(t, 10, gates...)
		trials := slices.DeleteFunc(slices.Clone(permits), func(p Permit) bool { return !p.Trial() }) // the rest hadn't heard yet
		if !dead() && read(t, store).State == HalfOpen && len(trials) > 0 {
			require.Len(t, trials, 1, "more than one trial")
			trial = trials[0]
			break
		}
		for _, p := range permits {
			p.Done(Outcome{Class: Cancelled})
		}
	}
	require.NotNil(t, trial)
	require.True(t, trial.Trial())
	require.Equal(t, trial.(*permit).trial.nonce, read(t, store).Holder)

	trial.Done(passed)
	for _, g := range gates {
		require.NoError(t, g.(*Breakers).Close(t.Context()))
	}
	require.Equal(t, Closed, read(t, store).State)
	require.EqualValues(t, 2, read(t, store).Gen)
}

func read(t *testing.T, store *Dynamo) Record {
	t.Helper()
	r, err := store.get(t.Context(), model, true)
	require.NoError(t, err)
	return r
}

func TestMissingTableIsAStoreThatIsAway(t *testing.T) {
	client := dynamoClient(t)
	g, log := logged(t, Settings{}, NewDynamo(client, "no-such-table", ""))
	g.Warm(t.Context(), model, "model-b")
	call(t, g, failed, failed)
	refused(t, g)
	require.NoError(t, g.Close(t.Context()))
	require.Equal(t, 1, log.count("level=WARN"))
	require.Equal(t, 1, log.count("ResourceNotFound")+log.count("reason=slow"), "slow: this machine was")
}

// scripted is a DynamoDB that answers as told.
type scripted struct {
	DynamoAPI
	update func() (*dynamodb.UpdateItemOutput, error)
	batch  func(*dynamodb.BatchGetItemInput) *dynamodb.BatchGetItemOutput
	gets   int
	getErr error
}

func (s *scripted) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return s.update()
}

func (s *scripted) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return s.batch(in), nil
}

func (s *scripted) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	s.gets++
	if !*in.ConsistentRead {
		return nil, errors.New("an authority must be asked consistently")
	}
	return &dynamodb.GetItemOutput{Item: map[string]types.AttributeValue{"st": text("O"), "g": number(4), "ou": number(5)}}, s.getErr
}

func TestLoserLearnsTheWinner(t *testing.T) {
	item := map[string]types.AttributeValue{"st": text("H"), "g": number(3), "lo": text("other"), "lu": number(9)}
	tests := []struct {
		name   string
		item   map[string]types.AttributeValue
		getErr error
		want   Record
		gets   int
		err    error
	}{
		{"from the failed condition", item, nil, Record{State: HalfOpen, Gen: 3, Holder: "other", LeaseUntil: 9}, 0, nil},
		{"by a consistent read", nil, nil, Record{State: Open, Gen: 4, OpenUntil: 5}, 1, nil},
		{"not at all", nil, errors.New("cut"), Record{}, 1, errLost},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			api := &scripted{getErr: tc.getErr, update: func() (*dynamodb.UpdateItemOutput, error) {
				return nil, &types.ConditionalCheckFailedException{Item: tc.item}
			}}
			r, applied, err := NewDynamo(api, "t", "").Update(t.Context(), model, Change{Op: Acquire, Gen: 3, Holder: "mine"})
			require.ErrorIs(t, err, tc.err)
			require.False(t, applied)
			require.Equal(t, tc.want, r)
			require.Equal(t, tc.gets, api.gets)
		})
	}
}

// Somebody else was faster, and nobody can say who: no trial of our own beside his.
func TestUnknownWinnerMeansNoTrial(t *testing.T) {
	item := map[string]types.AttributeValue{"pk": text("brk#default#" + model), "st": text("O"), "g": number(1), "ou": number(5)}
	api := &scripted{
		getErr: errors.New("cut"),
		update: func() (*dynamodb.UpdateItemOutput, error) { return nil, &types.ConditionalCheckFailedException{} },
		batch: func(in *dynamodb.BatchGetItemInput) *dynamodb.BatchGetItemOutput {
			return &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"t": {item}}}
		},
	}
	g := gateOn(t, Settings{}, NewDynamo(api, "t", ""))
	g.Warm(t.Context(), model, "model-b")
	refused(t, g)
}

func TestUnprocessedKeysAreUnknown(t *testing.T) {
	api := &scripted{batch: func(in *dynamodb.BatchGetItemInput) *dynamodb.BatchGetItemOutput {
		return &dynamodb.BatchGetItemOutput{UnprocessedKeys: map[string]types.KeysAndAttributes{
			"t": {Keys: in.RequestItems["t"].Keys[1:]},
		}}
	}}
	got, err := NewDynamo(api, "t", "").Load(t.Context(), "a", "b", "c")
	require.NoError(t, err)
	require.Equal(t, map[string]Record{"a": {}}, got)
}

// An item that no process of ours could have written counts as closed: acquiring its trial would fail for ever.
func TestItemsOfAnotherShape(t *testing.T) {
	type item = map[string]types.AttributeValue
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	require.Equal(t, Record{}, parse(nil))
	require.Equal(t, Record{Gen: 7}, parse(item{"st": text("??"), "g": number(7)}), "a state of a later version")
	whole := item{"st": text("O"), "g": number(4), "ou": number(5), "od": number(2000), "lt": number(1), "lu": number(0)}
	require.Equal(t, Open, parse(whole).State)
	half := maps.Clone(whole)
	half["st"] = text("H")
	require.Equal(t, HalfOpen, parse(half).State)
	for _, tc := range []struct {
		st, name string
		value    types.AttributeValue
	}{
		{"O", "g", nil},
		{"O", "g", text("4")},
		{"O", "g", n("1.5")},
		{"O", "g", n("-4")},
		{"O", "g", n("9e37")},
		{"O", "ou", nil},
		{"O", "ou", text("5")},
		{"O", "ou", n("9223372036854775807")},
		{"O", "od", n("10000000000000000")},
		{"O", "od", n("-1")},
		{"O", "lt", text("x")},
		{"O", "lt", n("9223372036854775807")},
		{"H", "g", nil},
		{"H", "lu", nil},
		{"H", "lu", &types.AttributeValueMemberNULL{Value: true}},
		{"H", "lu", n("1e38")},
		{"FO", "g", nil},
		{"FC", "g", nil},
		{"FO", "ou", text("5")},
		{"C", "k", n("-1")},
		{"C", "cm", text("1")},
	} {
		broken := maps.Clone(whole)
		broken["st"], broken[tc.name] = text(tc.st), tc.value
		if tc.value == nil {
			delete(broken, tc.name)
		}
		require.Equal(t, Record{}, parse(broken), "%s, %s: %v", tc.st, tc.name, tc.value)
	}
}

// A store that lies takes no process down and makes nothing hold.
func TestAnswersOfAnotherShape(t *testing.T) {
	for _, pk := range []types.AttributeValue{nil, text(""), text("x"), number(1), text("ldg#1")} {
		item := map[string]types.AttributeValue{"pk": pk, "st": text("O"), "g": number(1), "ou": number(1)}
		api := &scripted{batch: func(*dynamodb.BatchGetItemInput) *dynamodb.BatchGetItemOutput {
			return &dynamodb.BatchGetItemOutput{
				Responses:       map[string][]map[string]types.AttributeValue{"t": {item}},
				UnprocessedKeys: map[string]types.KeysAndAttributes{"t": {Keys: []map[string]types.AttributeValue{item}}},
			}
		}}
		got, err := NewDynamo(api, "t", "").Load(t.Context(), "a", "b")
		require.NoError(t, err)
		require.Equal(t, map[string]Record{"a": {}, "b": {}}, got)
	}
	api := &scripted{update: func() (*dynamodb.UpdateItemOutput, error) { return &dynamodb.UpdateItemOutput{}, nil }}
	_, applied, err := NewDynamo(api, "t", "").Update(t.Context(), model, Change{Op: Trip})
	require.ErrorIs(t, err, errNoRecord)
	require.False(t, applied)
}

// The client asks once more after a lost connection, at once, and never when throttled.
func TestClientRetries(t *testing.T) {
	fault := func(code string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.Copy(w, bytes.NewBufferString(`{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`"}`))
		}
	}
	load := func(d *Dynamo) error { _, err := d.Load(t.Context(), model); return err }
	update := func(op Op) func(*Dynamo) error {
		return func(d *Dynamo) error { _, _, err := d.Update(t.Context(), model, Change{Op: op}); return err }
	}
	lost := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	broken := func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }
	tests := []struct {
		name   string
		ask    func(*Dynamo) error
		answer func(http.ResponseWriter)
		calls  int64
	}{
		{"connection lost", load, lost, 2},
		{"server error", load, broken, 2},
		{"throttled", load, fault("ThrottlingException"), 1},
		{"capacity", load, fault("ProvisionedThroughputExceededException"), 1},
		{"refused", load, fault("ValidationException"), 1},
		{"a fenced write", update(Trip), lost, 2},
		{"a ticket is asked for once", update(Ticket), lost, 1},
		{"a ticket is asked for once, too", update(Ticket), broken, 1},
		{"an addition is sent once", update(Count), lost, 1},
		{"an addition is sent once, too", update(Count), broken, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				tc.answer(w)
			}))
			defer srv.Close()
			cfg := aws.Config{
				Region: "us-east-1", RetryMaxAttempts: 7,
				Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
			}
			client := NewClient(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &srv.URL })
			defer client.Options().HTTPClient.(*http.Client).CloseIdleConnections()
			require.Error(t, tc.ask(NewDynamo(client, "t", "")))
			require.Equal(t, tc.calls, calls.Load())
		})
	}
}

func TestLookIsConsistent(t *testing.T) {
	api := &scripted{} // refuses any other read
	got, err := NewDynamo(api, "t", "").Look(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, Open, got.State)
	require.Equal(t, 1, api.gets)
}
