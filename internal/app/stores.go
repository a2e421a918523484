package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/internal/cache"
	"holdfast/internal/config"
	"holdfast/internal/routing/breaker"
	"holdfast/internal/spend"
)

// openTable opens the stores of breakers and of what tenants spend, in the table that the places name. It asks nothing
// of it yet.
func (a *App) openTable(ctx context.Context) error {
	p := a.options.Places
	if p.Table == "" {
		a.log.Debug("breakers and caps in memory: HOLDFAST_TABLE is not set")
		a.store, a.meter, a.unstore = breaker.NewMemory(), spend.New(spend.NewMemory(), a.log), func() {}
		return nil
	}
	client, err := p.dynamo(ctx)
	if err != nil {
		return err
	}
	a.store, a.unstore = breakerStore(client, p.Table), func() { breaker.CloseIdle(client) }
	a.meter = spend.New(spend.NewDynamo(client, p.Table, ""), a.log)
	return nil
}

// breakerStore is the fleet's: everybody who has the table is of the same fleet.
func breakerStore(client breaker.DynamoAPI, table string) *breaker.Dynamo {
	return breaker.NewDynamo(client, table, "")
}

// dynamo is a client for the table.
func (p Places) dynamo(ctx context.Context) (*dynamodb.Client, error) {
	cfg, err := p.aws()(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS settings for the table %s: %w", p.Table, err)
	}
	return breaker.NewClient(cfg, atEndpoint), nil
}

func atEndpoint(o *dynamodb.Options) {
	if endpoint := dynamoEndpoint(); endpoint != "" {
		o.BaseEndpoint = &endpoint
	}
}

// dynamoEndpoint is where DynamoDB is said to be; "": at AWS.
func dynamoEndpoint() string {
	return cmp.Or(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), os.Getenv("AWS_ENDPOINT_URL"))
}

// openCache gives the cache that a configuration asks for, nil where it is off. The store is opened with the first of
// them and lives as long as the App; but for one that stands in until it is known where the database is.
func (a *App) openCache(c config.Cache) (cache.Service, error) {
	if c.Mode == "off" {
		return nil, nil
	}
	store := a.answers
	if store == nil {
		var err error
		if store, err = a.openAnswers(c); err != nil {
			return nil, err
		}
	}
	if a.database != nil {
		a.answers = store
	}
	settings := cache.Settings{
		Mode: c.Mode, Accept: c.Accept, TTL: c.TTL, MaxEntries: c.MaxEntries, Shared: c.Shared, Corpus: c.Corpus,
	}
	return cache.New(settings, store, a.embed, a.log), nil
}

// Migrate applies the migrations to the database and, on an endpoint that isn't AWS, creates the table. It does
// what the places name, needs no configuration and may be repeated. It says what it did through report.
func Migrate(ctx context.Context, p Places, report func(string)) error {
	return errors.Join(migrateDatabase(ctx, p, report), migrateTable(ctx, p, report))
}

func migrateTable(ctx context.Context, p Places, report func(string)) error {
	table := p.Table
	if table == "" {
		return nil
	}
	if dynamoEndpoint() == "" {
		report("table " + table + ": left alone, on AWS template.yaml declares it")
		return nil
	}
	client, err := p.dynamo(ctx)
	if err != nil {
		return err
	}
	defer breaker.CloseIdle(client)
	if err := breaker.CreateTable(ctx, client, table); err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	report("table " + table + ": there")
	return nil
}
