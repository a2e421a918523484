package spend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func TestMemoryConforms(t *testing.T) { conform(t, NewMemory()) }

func TestDynamoConforms(t *testing.T) {
	client, table := dynamoTable(t)
	conform(t, NewDynamo(client, table, ""))
}

const monday, tuesday = Day("2026-03-02"), Day("2026-03-03")

// conform is what every store must do.
func conform(t *testing.T, store Store) {
	load := func(t *testing.T, tenant string, day Day) int64 {
		n, err := store.Load(t.Context(), tenant, day)
		require.NoError(t, err)
		return n
	}
	add := func(t *testing.T, tenant string, day Day, nanos int64) int64 {
		n, err := store.Add(t.Context(), tenant, day, nanos)
		require.NoError(t, err)
		return n
	}
	t.Run("nobody has spent anything", func(t *testing.T) { require.Zero(t, load(t, "nobody", monday)) })
	t.Run("sums", func(t *testing.T) {
		require.EqualValues(t, 5, add(t, "sums", monday, 5))
		require.EqualValues(t, 12, add(t, "sums", monday, 7))
		require.EqualValues(t, 12, load(t, "sums", monday))
	})
	t.Run("tenants and days apart", func(t *testing.T) {
		add(t, "a", monday, 1)
		add(t, "a", tuesday, 2)
		add(t, "a.b", monday, 4)
		require.EqualValues(t, 9, add(t, "a", monday, 8))
		require.EqualValues(t, 2, load(t, "a", tuesday))
		require.EqualValues(t, 4, load(t, "a.b", monday))
	})
	t.Run("large amounts to the last digit", func(t *testing.T) {
		add(t, "large", monday, 2e18+1)
		require.Equal(t, int64(4e18+3), add(t, "large", monday, 2e18+2))
	})
	t.Run("many at once", func(t *testing.T) {
		var all sync.WaitGroup
		var largest atomic.Int64
		for range 20 {
			all.Go(func() {
				if n, err := store.Add(t.Context(), "many", monday, 3); err == nil && n > largest.Load() {
					largest.Store(n)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 60, load(t, "many", monday))
	})
}

func TestMemoryForgetsOldDays(t *testing.T) {
	m := NewMemory()
	for i := range 10 {
		_, err := m.Add(t.Context(), "t", DayOf(time.Unix(0, 0).AddDate(0, 0, i)), 1)
		require.NoError(t, err)
	}
	require.Len(t, m.tenants["t"], 2)
	n, err := m.Load(t.Context(), "t", "1970-01-10")
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func TestDay(t *testing.T) {
	late := time.Date(2024, 2, 28, 23, 30, 0, 0, time.FixedZone("west", -3600))
	require.Equal(t, Day("2024-02-29"), DayOf(late))
	require.Equal(t, time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC), DayOf(late).End())
	require.EqualValues(t, math.MaxInt64, plus(math.MaxInt64-1, 5))
}

func TestItemHasItsNames(t *testing.T) {
	client, table := dynamoTable(t)
	_, err := NewDynamo(client, table, "blue").Add(t.Context(), "team-a", monday, 42)
	require.NoError(t, err)
	str := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	key := map[string]types.AttributeValue{"pk": str("cap#blue#team-a"), "sk": str("2026-03-02")}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key})
	require.NoError(t, err)
	require.Equal(t, map[string]types.AttributeValue{
		"pk": key["pk"], "sk": key["sk"], "nanos": number(42),
		"x": number(time.Date(2026, 4, 7, 0, 0, 0, 0, time.UTC).Unix()),
	}, out.Item)
}

func TestItemThatIsNone(t *testing.T) {
	client, table := dynamoTable(t)
	store := NewDynamo(client, table, "")
	for i, v := range []types.AttributeValue{nil, &types.AttributeValueMemberS{Value: "5"}, number(-5), &types.AttributeValueMemberN{Value: "1.5"}} {
		item := store.key(fmt.Sprint("t", i), monday)
		if v != nil {
			item["nanos"] = v
		}
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
		require.NoError(t, err)
		_, err = store.Load(t.Context(), fmt.Sprint("t", i), monday)
		require.ErrorIs(t, err, errNoAmount)
	}
}

// Adding is sent once, whatever the answer; and whether it may have been added after all is told apart.
func TestAddIsNeverRepeated(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  func(w http.ResponseWriter)
		refused bool
	}{
		{"throttled", func(w http.ResponseWriter) { w.WriteHeader(400) }, true},
		{"fails inside", func(w http.ResponseWriter) { w.WriteHeader(500) }, false},
		{"unavailable", func(w http.ResponseWriter) { w.WriteHeader(503) }, false},
		{"cut", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, false},
		{"no JSON", func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, false},
		{"another answer", func(w http.ResponseWriter) { _, _ = w.Write([]byte("{}")) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				c.answer(w)
			}))
			defer srv.Close()
			_, err := NewDynamo(client(srv.URL), "t", "").Add(t.Context(), "t", monday, 1)
			require.Error(t, err)
			require.Equal(t, c.refused, errors.Is(err, ErrRefused), err.Error())
			require.EqualValues(t, 1, calls.Load())
		})
	}
	_, err := NewDynamo(client("http://127.0.0.1:1"), "t", "").Add(t.Context(), "t", monday, 1)
	require.ErrorIs(t, err, ErrRefused, "there was no connection")
}

func TestMissingTable(t *testing.T) {
	_, err := NewDynamo(client(endpoint(t)), "no-such-table", "").Add(t.Context(), "t", monday, 1)
	require.ErrorIs(t, err, ErrRefused)
	_, err = NewDynamo(client(endpoint(t)), "no-such-table", "").Load(t.Context(), "t", monday)
	require.Error(t, err)
}

func endpoint(t *testing.T) string {
	t.Helper()
	url := os.Getenv("HOLDFAST_TEST_DYNAMODB_URL")
	if url == "" {
		if os.Getenv("HOLDFAST_TEST_REQUIRE_PARTS") == "1" {
			t.Fatal("HOLDFAST_TEST_DYNAMODB_URL is not set")
		}
		t.Skip("HOLDFAST_TEST_DYNAMODB_URL is not set: no DynamoDB API to test against")
	}
	return url
}

func client(url string) *dynamodb.Client {
	return dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, func(o *dynamodb.Options) { o.BaseEndpoint = &url })
}

// dynamoTable makes a table of its own on the DynamoDB API that the tests are given.
func dynamoTable(t *testing.T) (*dynamodb.Client, string) {
	t.Helper()
	c := client(endpoint(t))
	table := fmt.Sprintf("spend-%d", time.Now().UnixNano())
	in := &dynamodb.CreateTableInput{TableName: &table, BillingMode: types.BillingModePayPerRequest}
	for name, key := range map[string]types.KeyType{"pk": types.KeyTypeHash, "sk": types.KeyTypeRange} {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: key})
	}
	if in.KeySchema[0].KeyType != types.KeyTypeHash {
		in.KeySchema[0], in.KeySchema[1] = in.KeySchema[1], in.KeySchema[0]
	}
	_, err := c.CreateTable(t.Context(), in)
	require.NoError(t, err)
	require.NoError(t, dynamodb.NewTableExistsWaiter(c, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 50 * time.Millisecond }).
		Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, 30*time.Second))
	t.Cleanup(func() {
		_, err := c.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
		require.NoError(t, err)
	})
	return c, table
}
