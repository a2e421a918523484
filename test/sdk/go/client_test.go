// Package sdk has the official OpenAI SDK for Go as a client of Holdfast. It is a module of its own, so that nobody
// who builds Holdfast downloads the SDK.
package sdk

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
)

// newClient asks the server at HOLDFAST_BASE_URL. HOLDFAST_API_KEY is a key that it knows; without one it lets
// anybody in.
func newClient(t *testing.T, more ...option.RequestOption) openai.Client {
	t.Helper()
	base, key := os.Getenv("HOLDFAST_BASE_URL"), os.Getenv("HOLDFAST_API_KEY")
	require.NotEmpty(t, base, "HOLDFAST_BASE_URL")
	if key == "" {
		key = "none-needed"
	}
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(base), option.WithAPIKey(key), option.WithMaxRetries(0), option.WithRequestTimeout(20 * time.Second),
	}, more...)...)
}

func ask() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    "auto",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi from Go")},
	}
}

// tierOf reads the holdfast extension of an answer or a chunk.
func tierOf(t *testing.T, raw string) string {
	t.Helper()
	var got struct {
		Holdfast struct {
			Tier string `json:"tier"`
		} `json:"holdfast"`
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &got))
	return got.Holdfast.Tier
}

func requireStatus(t *testing.T, err error, status int) *openai.Error {
	t.Helper()
	var failure *openai.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, status, failure.StatusCode)
	return failure
}

func TestChat(t *testing.T) {
	var response *http.Response
	client := newClient(t, option.WithResponseInto(&response))
	answer, err := client.Chat.Completions.New(context.Background(), ask())
	require.NoError(t, err)
	require.Len(t, answer.Choices, 1)
	require.NotEmpty(t, answer.Choices[0].Message.Content)
	require.Equal(t, "stop", answer.Choices[0].FinishReason)
	require.Positive(t, answer.Usage.TotalTokens)
	require.Equal(t, "model", tierOf(t, answer.RawJSON()))
	require.Equal(t, "model", response.Header.Get("Holdfast-Tier"))
}

func collect(t *testing.T, params openai.ChatCompletionNewParams) []openai.ChatCompletionChunk {
	t.Helper()
	client := newClient(t)
	stream := client.Chat.Completions.NewStreaming(context.Background(), params)
	defer stream.Close()
	var chunks []openai.ChatCompletionChunk
	for stream.Next() {
		chunks = append(chunks, stream.Current())
	}
	require.NoError(t, stream.Err())
	require.GreaterOrEqual(t, len(chunks), 3)
	return chunks
}

func TestStream(t *testing.T) {
	chunks := collect(t, ask())
	var sum openai.ChatCompletionAccumulator
	for _, chunk := range chunks {
		require.Len(t, chunk.Choices, 1)
		require.True(t, sum.AddChunk(chunk))
	}
	require.NotEmpty(t, sum.Choices[0].Message.Content)
	require.Equal(t, "stop", sum.Choices[0].FinishReason)
	require.Equal(t, "model", tierOf(t, chunks[0].RawJSON()))
	require.Equal(t, "model", tierOf(t, chunks[len(chunks)-1].RawJSON()))
}

func TestStreamWithUsage(t *testing.T) {
	params := ask()
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	chunks := collect(t, params)
	last := chunks[len(chunks)-1]
	require.Empty(t, last.Choices)
	require.Positive(t, last.Usage.TotalTokens)
	require.Equal(t, "model", tierOf(t, last.RawJSON()))
}

func TestModels(t *testing.T) {
	client := newClient(t)
	models, err := client.Models.List(context.Background())
	require.NoError(t, err)
	require.NotEmpty(t, models.Data)
	for _, model := range models.Data {
		require.NotEmpty(t, model.ID)
	}
	params := ask()
	params.Model = models.Data[0].ID
	answer, err := client.Chat.Completions.New(context.Background(), params)
	require.NoError(t, err)
	require.Equal(t, "model", tierOf(t, answer.RawJSON()))
}

func TestUnknownModel(t *testing.T) {
	params := ask()
	params.Model = "no-such-model"
	client := newClient(t)
	_, err := client.Chat.Completions.New(context.Background(), params)
	require.Equal(t, "model_not_found", requireStatus(t, err, http.StatusNotFound).Code)
}

func TestBadRequest(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*openai.ChatCompletionNewParams)
		param string
	}{
		{"no messages", func(p *openai.ChatCompletionNewParams) { p.Messages = []openai.ChatCompletionMessageParamUnion{} }, "messages"},
		{"two answers", func(p *openai.ChatCompletionNewParams) { p.N = openai.Int(2) }, "n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			params, client := ask(), newClient(t)
			c.spoil(&params)
			_, err := client.Chat.Completions.New(context.Background(), params)
			require.Equal(t, c.param, requireStatus(t, err, http.StatusBadRequest).Param)
			stream := client.Chat.Completions.NewStreaming(context.Background(), params)
			require.False(t, stream.Next())
			requireStatus(t, stream.Err(), http.StatusBadRequest)
		})
	}
}

func TestNoStoredAnswer(t *testing.T) {
	client := newClient(t)
	_, err := client.Chat.Completions.Get(context.Background(), "no-such-id")
	requireStatus(t, err, http.StatusNotFound)
}

func TestUnknownKey(t *testing.T) {
	client := newClient(t, option.WithAPIKey("not-a-key"))
	answer, err := client.Chat.Completions.New(context.Background(), ask())
	if os.Getenv("HOLDFAST_API_KEY") != "" {
		requireStatus(t, err, http.StatusUnauthorized)
		return
	}
	require.NoError(t, err)
	require.Equal(t, "model", tierOf(t, answer.RawJSON()))
}
