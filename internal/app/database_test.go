package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// account gives settings like those of a Lambda function.
func account(context.Context) (aws.Config, error) {
	return aws.Config{Region: "eu-central-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG", SessionToken: "session/token=="}, nil
	})}, nil
}

// The token is what AWS documents: the address, and a query that Signature Version 4 signs. The signature is computed
// here anew, by the algorithm's description.
func TestIAMPassword(t *testing.T) {
	token, err := iamPassword(account)(t.Context(), "db.example.eu-central-1.rds.amazonaws.com", 5432, "holdfast app")
	require.NoError(t, err)
	at, query, ok := strings.Cut(token, "/?")
	require.True(t, ok)
	require.Equal(t, "db.example.eu-central-1.rds.amazonaws.com:5432", at)
	unsigned, signature, ok := strings.Cut(query, "&X-Amz-Signature=")
	require.True(t, ok, "the signature stands last")
	v, err := url.ParseQuery(unsigned)
	require.NoError(t, err)
	stamp := v.Get("X-Amz-Date")
	signed, err := time.Parse("20060102T150405Z", stamp)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), signed, time.Minute)
	scope := stamp[:8] + "/eu-central-1/rds-db/aws4_request"
	require.Equal(t, url.Values{
		"Action": {"connect"}, "DBUser": {"holdfast app"}, "X-Amz-Algorithm": {"AWS4-HMAC-SHA256"},
		"X-Amz-Credential": {"AKIDEXAMPLE/" + scope}, "X-Amz-Date": {stamp}, "X-Amz-Expires": {"900"},
		"X-Amz-Security-Token": {"session/token=="}, "X-Amz-SignedHeaders": {"host"},
	}, v)

	hash := func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:]) }
	sign := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	canonical := "GET\n/\n" + strings.ReplaceAll(v.Encode(), "+", "%20") + "\nhost:" + at + "\n\nhost\n" + hash("")
	key := []byte("AWS4" + "wJalrXUtnFEMI/K7MDENG")
	for _, part := range strings.Split(scope, "/") {
		key = sign(key, part)
	}
	want := hex.EncodeToString(sign(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hash(canonical)))
	require.Equal(t, want, signature)
}

func TestIAMPasswordNeedsAnAccount(t *testing.T) {
	whole, _ := account(t.Context())
	for name, lacks := range map[string]func(*aws.Config) error{
		"settings":    func(*aws.Config) error { return errors.New("s3cret") },
		"region":      func(c *aws.Config) error { c.Region = ""; return nil },
		"credentials": func(c *aws.Config) error { c.Credentials = aws.AnonymousCredentials{}; return nil },
	} {
		find := func(context.Context) (aws.Config, error) {
			c := whole
			err := lacks(&c)
			return c, err
		}
		token, err := iamPassword(find)(t.Context(), "h", 5432, "u")
		require.ErrorContains(t, err, "no AWS "+name+" for the database")
		require.Empty(t, token)
	}
}

func TestDatabaseURLWithIAM(t *testing.T) {
	for _, c := range []struct{ url, want, err string }{
		{"postgres://u@h:5432/d?iam=true&sslmode=verify-full&sslrootcert=/x.pem", "postgres://u@h:5432/d?sslmode=verify-full&sslrootcert=%2Fx.pem", ""},
		{"postgresql://u@h/d?iam=true&sslmode=require", "postgresql://u@h/d?sslmode=require", ""},
		{"postgres://u:CANARY@h/d?iam=true", "", "needs sslmode=verify-full"},
		{"postgres://u:CANARY@h/d?iam=true&sslmode=prefer", "", "needs sslmode=verify-full"},
		{"postgres://u:CANARY@h/d?iam=yes&sslmode=require", "", "true or false"},
		{"host=h password=CANARY iam=true", "", "needs the form postgres://"},
		{"postgres://u:CANARY@h:port/d?iam=true", "", "needs the form postgres://"},
	} {
		got, err := Places{DatabaseURL: c.url, AWS: account}.database(t.Context())
		if c.err != "" {
			require.ErrorIs(t, err, errBadDatabase, c.url)
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "CANARY")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got.url)
		require.NotNil(t, got.password)
	}
	for _, plain := range []string{"", "postgres://u:p@h/d", "host=h user=miriam", "postgres://u:p@h/d?iam=false", "postgres://u:p@h/miriam="} {
		got, err := Places{DatabaseURL: plain}.database(t.Context())
		require.NoError(t, err, plain)
		require.Nil(t, got.password)
		require.Equal(t, strings.TrimSuffix(plain, "?iam=false"), got.url)
	}
}

// A parameter store that is away when a process starts doesn't keep it from the fleet's answers for all its life.
func TestDatabaseURLHeals(t *testing.T) {
	where := database(t)
	srv := parameterStore(t, map[string]string{"/holdfast/url": where})
	t.Setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1")
	l := lookFirst(t, inFront, Places{DatabaseURL: "ssm:/holdfast/url"}, "a")
	q := fresh()
	require.Equal(t, "model", l.body(q, "").meta.Tier)
	require.Equal(t, "cache", l.body(q, "").meta.Tier, "memory stands in")
	stillAway := l.app.now.Load()
	l.app.renew(t.Context())
	require.Same(t, stillAway, l.app.now.Load())

	t.Setenv("AWS_ENDPOINT_URL_SSM", srv.URL)
	l.app.renew(t.Context())
	require.Zero(t, l.app.renewal.next.Load(), "nothing is missing any more")
	require.Equal(t, "model", l.body(q, "").meta.Tier)
	require.Equal(t, "cache", l.body(q, "").meta.Tier)
	n, err := PurgeCache(t.Context(), Places{DatabaseURL: where}, CacheTarget{Tenant: "anonymous", Question: q})
	require.NoError(t, err)
	require.Equal(t, 2, n, "it is in the database, for each of the two tiers")
	require.NotContains(t, l.log.String(), where)
}

// What is purged is gone for all processes at once, and each may store it again.
func TestPurgeReachesAllProcesses(t *testing.T) {
	places := Places{DatabaseURL: database(t)}
	question := fmt.Sprintf("How do arches of type %d carry heavy loads?", time.Now().UnixNano()%1e9)
	healthy := providertest.Says("As ", "ever.")
	first, second := twins(t, "breaker: {enabled: false}\n", places, []providertest.Behaviour{healthy})
	tiers := func(b providertest.Behaviour) (tiers []string) {
		first.up[0].Play(b)
		for _, l := range []*lab{first, second} {
			tiers = append(tiers, l.ask(false, question).meta.Tier)
			require.NoError(t, l.app.after.wait(t.Context()))
		}
		return tiers
	}
	require.Equal(t, []string{"model", "model"}, tiers(healthy))
	require.Equal(t, []string{"cache", "cache"}, tiers(down()))
	n, err := PurgeCache(t.Context(), places, CacheTarget{Tenant: "anonymous", Question: question})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, []string{"fallback", "fallback"}, tiers(down()))
	require.Equal(t, []string{"model", "model"}, tiers(healthy))
	require.Equal(t, []string{"cache", "cache"}, tiers(down()), "it may be stored again")

	n, err = ForgetCache(t.Context(), places, CacheTarget{Tenant: "anonymous", Question: question}, time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	tiers(healthy)
	require.Equal(t, []string{"fallback", "fallback"}, tiers(down()), "nor is what is forgotten stored again")
	_, err = PurgeCache(t.Context(), Places{}, CacheTarget{Tenant: "anonymous"})
	require.ErrorContains(t, err, "HOLDFAST_DATABASE_URL is not set")
}
