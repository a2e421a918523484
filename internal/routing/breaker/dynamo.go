package breaker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// DynamoAPI is what the store asks of DynamoDB.
type DynamoAPI interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// NewClient gives a client with the clocks and retries that a breaker needs: a second attempt at once after a lost
// connection, none when throttled, and no connection older than what the service keeps.
func NewClient(cfg aws.Config, opts ...func(*dynamodb.Options)) *dynamodb.Client {
	transport := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = 250 * time.Millisecond }).
		WithTransportOptions(func(t *http.Transport) { t.IdleConnTimeout = 15 * time.Second }).
		GetTransport()
	client := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	settings := func(o *dynamodb.Options) {
		o.HTTPClient = client
		o.RetryMaxAttempts = 0 // the retryer's own counts, whatever cfg says
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts = 2
			r.MaxBackoff = 20 * time.Millisecond
			r.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(notThrottled)}, r.Retryables...)
		})
	}
	return dynamodb.NewFromConfig(cfg, append([]func(*dynamodb.Options){settings}, opts...)...)
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// CloseIdle closes the connections of a client of NewClient that nobody uses.
func CloseIdle(client *dynamodb.Client) {
	if c, ok := client.Options().HTTPClient.(*http.Client); ok {
		c.CloseIdleConnections()
	}
}

func notThrottled(err error) aws.Ternary {
	if retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) == aws.TrueTernary {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

const (
	batchKeys  = 100 // of one BatchGetItem
	itemState  = "state"
	itemSchema = 1
	itemLife   = 30 * 24 * time.Hour // TTL, moved on by every change; nothing depends on it
)

// Dynamo is the store that the fleet shares: one item a candidate, pk brk#<env>#<candidate>, sk state.
type Dynamo struct {
	client DynamoAPI
	table  string
	prefix string
}

// NewDynamo gives the store in a table with string keys pk and sk. env separates fleets that share a table; ""
// is "default".
func NewDynamo(client DynamoAPI, table, env string) *Dynamo {
	if env == "" {
		env = "default"
	}
	return &Dynamo{client: client, table: table, prefix: "brk#" + env + "#"}
}

// Load implements Store with eventually consistent reads: one GetItem, or a BatchGetItem for each 100.
func (d *Dynamo) Load(ctx context.Context, candidates ...string) (map[string]Record, error) {
	found := make(map[string]Record, len(candidates))
	if len(candidates) == 1 {
		r, err := d.get(ctx, candidates[0], false)
		found[candidates[0]] = r
		return found, err
	}
	keys := slices.Compact(slices.Sorted(slices.Values(candidates)))
	for chunk := range slices.Chunk(keys, batchKeys) {
		if err := d.batch(ctx, chunk, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Look implements Store with a consistent read.
func (d *Dynamo) Look(ctx context.Context, candidate string) (Record, error) {
	return d.get(ctx, candidate, true)
}

func (d *Dynamo) batch(ctx context.Context, candidates []string, found map[string]Record) error {
	keys := make([]map[string]types.AttributeValue, len(candidates))
	for i, c := range candidates {
		keys[i] = d.key(c)
		found[c] = Record{}
	}
	out, err := d.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{d.table: {Keys: keys}},
	})
	if err != nil {
		return fmt.Errorf("read breakers: %w", err)
	}
	for _, item := range out.Responses[d.table] {
		if id, ours := d.candidate(item); ours {
			found[id] = parse(item)
		}
	}
	for _, key := range out.UnprocessedKeys[d.table].Keys {
		id, _ := d.candidate(key)
		delete(found, id)
	}
	return nil
}

func (d *Dynamo) get(ctx context.Context, candidate string, consistent bool) (Record, error) {
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &d.table, Key: d.key(candidate), ConsistentRead: &consistent,
	})
	if err != nil {
		return Record{}, fmt.Errorf("read breaker: %w", err)
	}
	return parse(out.Item), nil
}

// Update implements Store. A loser learns the winner's record from the failed condition, or, where the endpoint
// doesn't return it, by a consistent read.
func (d *Dynamo) Update(ctx context.Context, candidate string, c Change) (Record, bool, error) {
	update, condition := expression(c.Op)
	in := &dynamodb.UpdateItemInput{
		TableName: &d.table, Key: d.key(candidate),
		UpdateExpression: &update, ExpressionAttributeValues: values(c, update+" "+condition),
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	out, err := d.client.UpdateItem(ctx, in, attempts(c.Op))
	if err == nil {
		r := parse(out.Attributes)
		if r.Gen == 0 {
			return Record{}, false, errNoRecord
		}
		return r, true, nil
	}
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return Record{}, false, fmt.Errorf("write breaker: %w", err)
	}
	r := parse(failed.Item)
	if failed.Item == nil {
		if r, err = d.get(ctx, candidate, true); err != nil {
			return Record{}, false, errLost
		}
	}
	return r, c.made(r), nil
}

// attempts keeps the SDK from sending an addition twice: one whose answer was lost may have been made.
func attempts(op Op) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		if op == Ticket || op == Count {
			o.Retryer = aws.NopRetryer{}
		}
	}
}

var errNoRecord = errors.New("write breaker: no record in the answer")

const (
	closedNow = "g = :g AND (st = :C OR (st IN (:FO, :FC) AND ou BETWEEN :one AND :now))" // as Record.closed
	absent    = "attribute_not_exists(pk) OR "
	onTrial   = "st = :H AND g = :g AND lt = :lt AND lo = :lo"
	onSample  = "st = :C AND g = :g AND w = :w"
	noSample  = "w = :zero, n = :zero, f = :zero, k = :zero, sl = :zero, cm = :zero"
	stamp     = ", ua = :now, v = :v, x = :x"
)

// expression is the protocol as DynamoDB reads it.
func expression(op Op) (update, condition string) {
	switch op {
	case Trip:
		return "SET st = :O, g = if_not_exists(g, :zero) + :one, ou = :u, od = :od, oc = :oc, why = :why, ps = :zero" +
			stamp + " REMOVE lo, lu", absent + "(" + closedNow + ")"
	case Acquire:
		return "SET st = :H, lt = if_not_exists(lt, :zero) + :one, lo = :lo, lu = :u" + stamp,
			"g = :g AND ((st = :O AND ou <= :now) OR (st = :H AND lu <= :now))"
	case Close:
		return "SET st = :C, g = g + :one, oc = :zero, ps = :zero, " + noSample + stamp + " REMOVE lo, lu, ou", onTrial
	case Pass:
		return "SET ps = if_not_exists(ps, :zero) + :one, lu = :zero" + stamp + " REMOVE lo", onTrial
	case Reopen:
		return "SET st = :O, g = g + :one, ou = :u, od = :od, oc = :oc, why = :why, ps = :zero" + stamp + " REMOVE lo, lu",
			onTrial
	case Release:
		return "SET lu = :zero" + stamp + " REMOVE lo", onTrial
	case Extend:
		return "SET ou = :u" + stamp, "st = :O AND g = :g AND ou < :u"
	case Suspect:
		return "SET st = :C, g = if_not_exists(g, :one), w = :now, n = :zero, f = :zero, k = :zero, sl = :zero, cm = :cm" +
			stamp + " REMOVE ou", absent + "(w = :w AND " + closedNow + ")"
	case Ticket:
		return "ADD n :one", onSample + " AND n < :n"
	case Count:
		return "ADD f :f, k :k, sl :sl", onSample + " AND k >= :least"
	default: // Force
		return "SET st = :st, g = if_not_exists(g, :zero) + :one, ou = :u, od = :zero, oc = :zero, why = :why, ps = :zero, " +
			noSample + ", ua = :now, v = :v REMOVE lo, lu, x", "" // an order without an end must not expire
	}
}

// values gives those that the expressions name: DynamoDB refuses any other.
func values(c Change, expressions string) map[string]types.AttributeValue {
	all := map[string]types.AttributeValue{}
	for _, name := range strings.FieldsFunc(expressions, func(r rune) bool { return strings.ContainsRune(" ,()", r) }) {
		if name[0] == ':' {
			all[name] = value(c, name[1:])
		}
	}
	return all
}

func value(c Change, name string) types.AttributeValue {
	switch name {
	case "O", "C", "H", "FO", "FC":
		return text(name)
	case "st":
		return text(stateName(c.State))
	case "lo":
		return text(c.Holder)
	case "why":
		return text(c.Why)
	case "cm":
		if c.Window.AfterCalm {
			return number(1)
		}
		return number(0)
	}
	return number(map[string]int64{
		"zero": 0, "one": 1, "v": itemSchema, "x": c.Now/1000 + int64(itemLife/time.Second),
		"now": c.Now, "u": c.Until, "g": c.Gen, "lt": c.Token, "od": c.OpenFor.Milliseconds(), "oc": c.Opens,
		"w": c.Window.Start, "n": c.Window.Tickets, "f": c.Window.Failed, "k": c.Window.OK, "sl": c.Window.Slow,
		"least": max(0, -c.Window.OK),
	}[name])
}

func stateName(s State) string { return [...]string{"C", "O", "H", "FO", "FC"}[s] }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func (d *Dynamo) key(candidate string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": text(d.prefix + candidate), "sk": text(itemState)}
}

func (d *Dynamo) candidate(item map[string]types.AttributeValue) (id string, ours bool) {
	return strings.CutPrefix(stringOf(item["pk"]), d.prefix)
}

// parse reads an item. An unknown state counts as closed, and so does an item that the protocol could not have
// written: its conditions would refuse every trial, and the candidate with it for ever.
func parse(item map[string]types.AttributeValue) Record {
	whole := true
	n := func(name string) int64 {
		n, ok := numberOf(item[name])
		whole = whole && ok
		return n
	}
	r := Record{
		Gen: n("g"), OpenUntil: n("ou"), OpenFor: time.Duration(n("od")) * time.Millisecond, Opens: n("oc"),
		Token: n("lt"), Holder: stringOf(item["lo"]), LeaseUntil: n("lu"), Passed: n("ps"),
		Window: Window{
			Start: n("w"), Tickets: n("n"), Failed: n("f"), OK: n("k"), Slow: n("sl"), AfterCalm: n("cm") > 0,
		},
		Why: stringOf(item["why"]), Updated: n("ua"),
	}
	switch stringOf(item["st"]) {
	case "O":
		r.State = Open
		whole = whole && r.Gen > 0 && item["ou"] != nil
	case "H":
		r.State = HalfOpen
		whole = whole && r.Gen > 0 && item["lu"] != nil
	case "FO":
		r.State = ForcedOpen
		whole = whole && r.Gen > 0
	case "FC":
		r.State = ForcedClosed
		whole = whole && r.Gen > 0
	}
	if !whole {
		return Record{}
	}
	return r
}

func stringOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// maxNumber is what no number of an item exceeds: as Unix ms the year 2109, and as a duration it still fits.
const maxNumber = 1 << 42

// numberOf gives a number, 0 where there is none. It says false to what is no number of the protocol.
func numberOf(v types.AttributeValue) (n int64, ok bool) {
	if v == nil {
		return 0, true
	}
	s, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s.Value, 10, 64)
	return n, err == nil && 0 <= n && n <= maxNumber
}

// TableAPI is what CreateTable asks of DynamoDB.
type TableAPI interface {
	dynamodb.DescribeTableAPIClient
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// CreateTable makes the one table, keys pk and sk, paid per request, and waits until it can be used. It may be
// repeated. Expiry by x is asked for; an endpoint that has none goes without.
func CreateTable(ctx context.Context, client TableAPI, name string) error {
	key := func(attr string, t types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(attr), KeyType: t}
	}
	str := func(attr string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(attr), AttributeType: types.ScalarAttributeTypeS}
	}
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &name,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{str("pk"), str("sk")},
		KeySchema:            []types.KeySchemaElement{key("pk", types.KeyTypeHash), key("sk", types.KeyTypeRange)},
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("create table: %w", err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, 2*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, 30*time.Second); err != nil {
		return fmt.Errorf("wait for table: %w", err)
	}
	return expireBy(ctx, client, name)
}

func expireBy(ctx context.Context, client TableAPI, name string) error {
	_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("x"), Enabled: aws.Bool(true)},
	})
	var refused smithy.APIError
	if errors.As(err, &refused) && (refused.ErrorCode() == "UnknownOperationException" ||
		refused.ErrorCode() == "ValidationException") { // unknown to the endpoint, or enabled already
		return nil
	}
	if err != nil {
		return fmt.Errorf("set time to live: %w", err)
	}
	return nil
}
