package providers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// bedrock speaks Amazon Bedrock's Converse API, POST {base}/model/{model}/converse-stream. A model is named by its id,
// an inference profile or an ARN. Calls carry an API key of Bedrock's, else they are signed with the credentials of
// AWS's default chain. The service's own client is not used: see docs/decisions/0010.
type bedrock struct {
	client *client
	base   string // "" is the address of the region
	way    string // how thinking is asked for; "" is what the model's family takes
	aws    awsAccount
}

// newBedrock makes a provider of Bedrock's dialect. It asks for no credentials yet. What settings leave empty comes
// from the environment, as in AWS's own clients.
func newBedrock(s Settings) Provider {
	s.APIKey = cmp.Or(s.APIKey, os.Getenv("AWS_BEARER_TOKEN_BEDROCK"))
	return &bedrock{
		client: newClient(s, "Authorization"),
		base:   cmp.Or(s.BaseURL, os.Getenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"), os.Getenv("AWS_ENDPOINT_URL")),
		way:    s.Thinking,
		aws:    awsAccount{region: s.Region, find: s.AWS},
	}
}

// Stream calls the model.
func (p *bedrock) Stream(ctx context.Context, call Call) (Stream, error) {
	if err := p.Check(call); err != nil {
		return nil, err
	}
	at, err := p.url(ctx, call)
	if err != nil {
		return nil, err
	}
	body := p.body(call)
	header, err := p.sign(ctx, at, body)
	if err != nil {
		return nil, err
	}
	if !call.Options.NoStream {
		header.Set("Accept", "application/vnd.amazon.eventstream")
	}
	resp, err := p.client.post(ctx, at, body, header, call.Connect)
	if err != nil {
		return nil, err
	}
	return newBedrockStream(resp.Body, call.Model, p.client), nil
}

// url is where a call goes. The model's name is one segment of the path, all but plain characters escaped, as the
// signature has it.
func (p *bedrock) url(ctx context.Context, call Call) (string, error) {
	base := baseURL(call, p.base)
	if base == "" {
		region, err := p.aws.place(ctx, "")
		if err != nil {
			return "", err
		}
		base = "https://bedrock-runtime." + region + ".amazonaws.com"
	}
	method := "/converse-stream"
	if call.Options.NoStream {
		method = "/converse"
	}
	model := strings.ReplaceAll(url.QueryEscape(call.Model), "+", "%20")
	return strings.TrimRight(base, "/") + "/model/" + model + method, nil
}

// sign gives the headers that sign a call; none for one that carries a key.
func (p *bedrock) sign(ctx context.Context, at string, body []byte) (http.Header, error) {
	if p.client.header.Get("Authorization") != "" {
		return http.Header{}, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Kind: KindConnect, Err: errURL}
	}
	req.Host = cmp.Or(p.client.header.Get("Host"), req.Host)
	return req.Header, p.aws.sign(ctx, req, body)
}

// AWSConfig finds region and credentials.
type AWSConfig func(context.Context) (aws.Config, error)

// EnvironmentAWS is an AWSConfig of the environment's variables alone, as Lambda sets them. AWS's whole chain (files,
// single sign-on, roles of machines) would add 1.9 MB to a binary.
func EnvironmentAWS(context.Context) (aws.Config, error) {
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		c := aws.Credentials{
			AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: os.Getenv("AWS_SESSION_TOKEN"), Source: "environment",
		}
		if !c.HasKeys() {
			return aws.Credentials{}, errNoCredentials
		}
		return c, nil
	})
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	return aws.Config{Region: region, Credentials: credentials}, nil
}

// awsAccount is where calls go and who makes them. What it isn't told is read at the first call, and again after a
// failure, so that a start waits for nothing.
type awsAccount struct {
	region string
	find   AWSConfig // nil: EnvironmentAWS

	mu     sync.Mutex
	config *aws.Config
}

var (
	errNoAccount     = errors.New("AWS's shared configuration can't be read")
	errNoCredentials = errors.New("there are no AWS credentials")
	errNoRegion      = errors.New("there is no AWS region")
)

// refused is an account that can't be used. AWS's own errors stay out of it: they quote files and addresses.
func refused(code string, err error) *Error { return &Error{Kind: KindAuth, Code: code, Err: err} }

func (a *awsAccount) load(ctx context.Context) (*aws.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.config == nil {
		find := a.find
		if find == nil {
			find = EnvironmentAWS
		}
		config, err := find(context.WithoutCancel(ctx)) // reads files at most, asks nobody
		if err != nil {
			return nil, refused("no_credentials", errNoAccount)
		}
		a.config = &config
	}
	return a.config, nil
}

// place is the region of a host: what its name says, else what was set.
func (a *awsAccount) place(ctx context.Context, host string) (string, error) {
	_, rest, _ := strings.Cut(host, "bedrock-runtime")
	if labels := strings.Split(rest, "."); strings.Contains(rest, ".amazonaws.com") || strings.HasSuffix(rest, ".api.aws") {
		return labels[1], nil
	}
	if a.region != "" {
		return a.region, nil
	}
	config, err := a.load(ctx)
	if err == nil && config.Region == "" {
		err = refused("no_region", errNoRegion)
	}
	if err != nil {
		return "", err
	}
	return config.Region, nil
}

// sign signs a request with what credentials there are.
func (a *awsAccount) sign(ctx context.Context, req *http.Request, body []byte) error {
	config, err := a.load(ctx)
	if err != nil {
		return err
	}
	region, err := a.place(ctx, req.URL.Hostname())
	if err != nil {
		return err
	}
	credentials, err := config.Credentials.Retrieve(ctx)
	if ctx.Err() != nil {
		return ended(ctx)
	}
	hash := sha256.Sum256(body)
	if err == nil {
		err = v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(hash[:]), "bedrock", region, time.Now())
	}
	if err != nil {
		return refused("no_credentials", errNoCredentials)
	}
	return nil
}

// frame is one message of AWS's event stream.
type frame struct {
	kind string // event, exception or error
	name string // of the event, the exception or the error
	text string // of an error, which has no payload
	data []byte // valid until the next one is read
}

// frameReader reads AWS's event stream.
type frameReader struct {
	in      *bufio.Reader
	whole   bytes.Buffer // one frame
	decoder *eventstream.Decoder
	payload []byte
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{in: bufio.NewReaderSize(r, 32<<10), decoder: eventstream.NewDecoder()}
}

// next gives the next frame. Its error is io.EOF between two frames, KindTruncated within one, KindMalformed for what
// is none, else what reading gave.
func (r *frameReader) next() (frame, error) {
	const prelude, least = 12, 16 // lengths and their checksum; and the checksum at the end
	head, err := r.in.Peek(prelude)
	switch {
	case errors.Is(err, io.EOF) && len(head) > 0:
		return frame{}, undecodable(true)
	case err != nil:
		return frame{}, err
	}
	length, headers := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	switch {
	case crc32.ChecksumIEEE(head[:8]) != binary.BigEndian.Uint32(head[8:]), length < least, headers > length-least:
		return frame{}, undecodable(false)
	case length > maxEvent:
		return frame{}, tooLarge()
	}
	r.whole.Reset()
	switch _, err := io.CopyN(&r.whole, r.in, int64(length)); {
	case errors.Is(err, io.EOF):
		return frame{}, undecodable(true)
	case err != nil:
		return frame{}, err
	}
	return r.decode()
}

func (r *frameReader) decode() (frame, error) {
	message, err := r.decoder.Decode(bytes.NewReader(r.whole.Bytes()), r.payload)
	if err != nil {
		return frame{}, undecodable(false)
	}
	r.payload = message.Payload
	header := func(name string) string {
		value, _ := message.Headers.Get(name).(eventstream.StringValue)
		return string(value)
	}
	f := frame{kind: header(":message-type"), data: message.Payload}
	switch f.kind {
	case "event":
		f.name = header(":event-type")
	case "exception":
		f.name = header(":exception-type")
	case "error":
		f.name, f.text = header(":error-code"), header(":error-message")
	}
	return f, nil
}
