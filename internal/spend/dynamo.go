package spend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DynamoAPI is what the store asks of DynamoDB.
type DynamoAPI interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// itemLife is how long a day stays to be read after its end. Nothing depends on it.
const itemLife = 35 * 24 * time.Hour

// Dynamo is the store that the fleet shares: one item a tenant and day, pk cap#<env>#<tenant>, sk the day, with the
// amount in nanos.
type Dynamo struct {
	client DynamoAPI
	table  string
	prefix string
}

// NewDynamo gives the store in a table with string keys pk and sk. env separates fleets that share a table; "" is
// "default".
func NewDynamo(client DynamoAPI, table, env string) *Dynamo {
	if env == "" {
		env = "default"
	}
	return &Dynamo{client: client, table: table, prefix: "cap#" + env + "#"}
}

// Load implements Store with a consistent read.
func (d *Dynamo) Load(ctx context.Context, tenant string, day Day) (int64, error) {
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &d.table, Key: d.key(tenant, day), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, fmt.Errorf("read what a tenant has spent: %w", err)
	}
	if out.Item == nil {
		return 0, nil
	}
	return amount(out.Item)
}

// Add implements Store. It is sent once, as a second time would add a second time.
func (d *Dynamo) Add(ctx context.Context, tenant string, day Day, nanos int64) (int64, error) {
	out, err := d.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &d.table, Key: d.key(tenant, day), ReturnValues: types.ReturnValueAllNew,
		UpdateExpression: aws.String("ADD nanos :n SET x = :x"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":n": number(nanos), ":x": number(day.End().Add(itemLife).Unix()),
		},
	}, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	switch {
	case err == nil:
		return amount(out.Attributes)
	case refused(err):
		return 0, fmt.Errorf("add what a tenant has spent: %w: %w", ErrRefused, err)
	}
	return 0, fmt.Errorf("add what a tenant has spent: %w", err)
}

// refused says whether an error is an answer that blames the request, or comes from before there was a connection.
func refused(err error) bool {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() >= 400 && answer.HTTPStatusCode() < 500 {
		return true
	}
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial"
}

func (d *Dynamo) key(tenant string, day Day) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: d.prefix + tenant}, "sk": &types.AttributeValueMemberS{Value: string(day)},
	}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

var errNoAmount = errors.New("the item of what a tenant has spent has no amount")

func amount(item map[string]types.AttributeValue) (int64, error) {
	v, ok := item["nanos"].(*types.AttributeValueMemberN)
	if !ok {
		return 0, errNoAmount
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil || n < 0 {
		return 0, errNoAmount
	}
	return n, nil
}
