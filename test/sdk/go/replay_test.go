package sdk

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
)

// Answers from the cache: HOLDFAST_BASE_URL is a server in cache mode front.
func TestReplay(t *testing.T) {
	var response *http.Response
	client, question := newClient(t, option.WithResponseInto(&response)), ask()
	question.Messages[0] = openai.UserMessage("Please repeat for Go: " + strings.Repeat("arches carry bridges, 桥梁 rest on piers. ", 60))
	var answer *openai.ChatCompletion
	for range 20 { // what is kept is kept after the answer
		var err error
		answer, err = client.Chat.Completions.New(context.Background(), question)
		require.NoError(t, err)
		if tierOf(t, answer.RawJSON()) == "cache" {
			break
		}
	}
	require.Equal(t, "cache", tierOf(t, answer.RawJSON()))
	require.Regexp(t, `^exact; age=\d+$`, response.Header.Get("Holdfast-Cache"))
	require.Equal(t, "0", response.Header.Get("Holdfast-Attempts"))
	require.Equal(t, "stop", answer.Choices[0].FinishReason)
	require.Zero(t, answer.Usage.TotalTokens)
	require.Greater(t, len(answer.Choices[0].Message.Content), 1024)

	for _, usage := range []bool{false, true} {
		params := question
		if usage {
			params.StreamOptions.IncludeUsage = openai.Bool(true)
		}
		stream := client.Chat.Completions.NewStreaming(context.Background(), params)
		whole := openai.ChatCompletionAccumulator{}
		chunks := 0
		for stream.Next() {
			require.True(t, whole.AddChunk(stream.Current()))
			chunks++
		}
		require.NoError(t, stream.Err())
		require.NoError(t, stream.Close())
		require.Greater(t, chunks, 3, "a long answer in one piece")
		require.Equal(t, answer.Choices[0].Message.Content, whole.Choices[0].Message.Content)
		require.Equal(t, "stop", whole.Choices[0].FinishReason)
		require.Zero(t, whole.Usage.TotalTokens)
	}
}
