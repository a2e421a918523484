package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"holdfast/internal/routing/breaker"
)

// Operator sees and forces the breakers of the fleet that shares a table. People use it; requests don't.
type Operator struct {
	store *breaker.Dynamo
	table string
}

// NewOperator makes an Operator for the table that the places name. It asks nothing of it yet, but needs credentials.
func NewOperator(ctx context.Context, p Places) (*Operator, error) {
	cfg, err := p.aws()(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS settings for the table %s: %w", p.Table, err)
	}
	if cfg.Region == "" {
		return nil, errors.New("AWS's region isn't known: set AWS_REGION")
	}
	if cfg.Credentials != nil {
		if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
			return nil, fmt.Errorf("there are no AWS credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or sign in (%w)", err)
		}
	}
	// Its own client: a person waits longer than a request, and may be far from the region.
	client := dynamodb.NewFromConfig(cfg, atEndpoint, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	})
	return &Operator{store: breakerStore(client, p.Table), table: p.Table}, nil
}

// States tells how the breakers of candidates are now, in the order of the candidates.
func (o *Operator) States(ctx context.Context, candidates ...string) ([]breaker.Status, error) {
	now := time.Now()
	all := make([]breaker.Status, len(candidates))
	for i, c := range candidates {
		r, err := o.store.Look(ctx, c)
		if err != nil {
			return nil, o.explain(err)
		}
		all[i] = r.Status(c, now)
	}
	return all, nil
}

// Force gives an order about a candidate and tells the state before and after it.
func (o *Operator) Force(ctx context.Context, candidate string, order breaker.Order) (before, after breaker.Status, err error) {
	was, err := o.States(ctx, candidate)
	if err != nil {
		return before, after, err
	}
	r, err := order.Give(ctx, o.store, candidate)
	if err != nil {
		return before, after, o.explain(err)
	}
	return was[0], r.Status(candidate, time.Now()), nil
}

// explain tells a person what the SDK's words mean.
func (o *Operator) explain(err error) error {
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return fmt.Errorf("there is no table %s in this account and region", o.table)
	}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return fmt.Errorf("table %s: %s: %s", o.table, refused.ErrorCode(), refused.ErrorMessage())
	}
	return fmt.Errorf("table %s: %w", o.table, err)
}
