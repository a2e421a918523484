package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"holdfast/internal/providers"
)

// batch is how many parameters one call of AWS Systems Manager gives.
const batch = 10

// parameters fetches from AWS Systems Manager's parameter store. It makes the one call that it needs itself: the
// service's own client would add 2.5 MB to every bootstrap.
type parameters struct {
	find providers.AWSConfig
	once sync.Once
	aws  aws.Config
	err  error
}

// Fetch implements config.Fetcher.
func (p *parameters) Fetch(ctx context.Context, paths []string) (map[string]string, error) {
	p.once.Do(func() { p.aws, p.err = p.find(ctx) })
	if p.err != nil {
		return nil, p.err
	}
	found := map[string]string{}
	for names := range slices.Chunk(paths, batch) {
		if err := p.get(ctx, names, found); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (p *parameters) get(ctx context.Context, names []string, into map[string]string) error {
	body, err := json.Marshal(map[string]any{"Names": names, "WithDecryption": true})
	if err != nil {
		return err
	}
	req, err := p.request(ctx, body)
	if err != nil {
		return err
	}
	// A transport of its own: it follows no redirect with a signed request, and keeps no connection, as calls are rare.
	res, err := (&http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return errors.New("the parameter store can't be reached")
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the parameter store answers with status %d", res.StatusCode)
	}
	var got struct {
		Parameters []struct{ Name, Value string }
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&got); err != nil {
		return errors.New("the parameter store's answer can't be read") // the cause may quote a value
	}
	for _, parameter := range got.Parameters {
		into[parameter.Name] = parameter.Value
	}
	return nil
}

// request is a signed GetParameters call.
func (p *parameters) request(ctx context.Context, body []byte) (*http.Request, error) {
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_SSM"), os.Getenv("AWS_ENDPOINT_URL"), "https://ssm."+p.aws.Region+".amazonaws.com")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the parameter store's address is no URL")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "AmazonSSM.GetParameters")
	credentials, err := p.aws.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, errors.New("there are no AWS credentials for the parameter store")
	}
	hash := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(hash[:]), "ssm", p.aws.Region, time.Now())
	return req, err
}
