package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"
)

const (
	question = "What is the weather in Paris and in Oslo?"
	summary  = "The tools say Paris: 21 degrees and Oslo: 4 degrees."
	seen     = "I see 1 image of 70 bytes."
)

// refusal is what a dialect can't carry, and the name that its refusal gives it.
type refusal struct {
	Name                   string
	Tools, Schema, History bool
	Fields                 map[string]any
	Names                  string
}

// cases reads the file at HOLDFAST_CASES: the dialects, each also a candidate, what they refuse, and a picture.
func cases(t *testing.T) (c struct {
	Dialects []string
	Picture  string
	Refusals map[string][]refusal
},
) {
	t.Helper()
	raw, err := os.ReadFile(os.Getenv("HOLDFAST_CASES"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &c))
	require.NotEmpty(t, c.Dialects)
	return c
}

func TestDialects(t *testing.T) {
	c := cases(t)
	for _, name := range c.Dialects {
		t.Run(name, func(t *testing.T) {
			d := dialect{newClient(t), name}
			for way, send := range map[string]sender{"whole": d.whole, "streamed": d.streamed} {
				t.Run("chat "+way, func(t *testing.T) { chats(t, send) })
				t.Run("tools "+way, func(t *testing.T) { callsTools(t, send) })
				t.Run("structured output "+way, func(t *testing.T) { fillsSchema(t, send) })
				t.Run("vision "+way, func(t *testing.T) { sees(t, send, c.Picture) })
			}
			for _, r := range c.Refusals[name] {
				t.Run("refused: "+r.Name, func(t *testing.T) { d.refuses(t, r) })
			}
			t.Run("refused: an image that is not fetched", func(t *testing.T) {
				d.refusesParams(t, "image", picture("http://example.com/picture.png"))
			})
			t.Run("failing provider", func(t *testing.T) { d.fails(t) })
		})
	}
}

// dialect is the candidate of one dialect.
type dialect struct {
	client openai.Client
	name   string
}

// sender asks a candidate and gives the one choice of its answer.
type sender func(*testing.T, openai.ChatCompletionNewParams) openai.ChatCompletionChoice

func (d dialect) whole(t *testing.T, params openai.ChatCompletionNewParams) openai.ChatCompletionChoice {
	t.Helper()
	params.Model = d.name
	answer, err := d.client.Chat.Completions.New(context.Background(), params)
	require.NoError(t, err)
	require.Equal(t, "model", tierOf(t, answer.RawJSON()))
	require.Positive(t, answer.Usage.TotalTokens)
	require.Len(t, answer.Choices, 1)
	return answer.Choices[0]
}

func (d dialect) streamed(t *testing.T, params openai.ChatCompletionNewParams) openai.ChatCompletionChoice {
	t.Helper()
	params.Model = d.name
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := d.client.Chat.Completions.NewStreaming(context.Background(), params)
	defer stream.Close()
	var sum openai.ChatCompletionAccumulator
	for stream.Next() {
		require.True(t, sum.AddChunk(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Positive(t, sum.Usage.TotalTokens)
	require.Len(t, sum.Choices, 1)
	return sum.Choices[0]
}

func said(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func chats(t *testing.T, send sender) {
	choice := send(t, said("Hello?"))
	require.Equal(t, "Hello from upstream.", choice.Message.Content)
	require.Equal(t, "stop", choice.FinishReason)
}

func object(properties map[string]any) shared.FunctionParameters {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	return shared.FunctionParameters{
		"type": "object", "properties": properties, "required": names, "additionalProperties": false,
	}
}

func tools() []openai.ChatCompletionToolUnionParam {
	return []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get_weather", Description: openai.String("Weather now"), Strict: openai.Bool(true),
		Parameters: object(map[string]any{"city": map[string]any{"type": "string"}}),
	})}
}

// callsTools goes both turns: the calls, and what the model makes of their results.
func callsTools(t *testing.T, send sender) {
	params := said(question)
	params.Tools = tools()
	choice := send(t, params)
	require.Equal(t, "tool_calls", choice.FinishReason)
	calls := choice.Message.ToolCalls
	require.Len(t, calls, 2)
	require.NotEqual(t, calls[0].ID, calls[1].ID)
	params.Messages = append(params.Messages, choice.Message.ToParam())
	for i, want := range []struct {
		city    string
		degrees int
	}{{"Paris", 21}, {"Oslo", 4}} {
		require.Equal(t, "get_weather", calls[i].Function.Name)
		require.JSONEq(t, fmt.Sprintf(`{"city":%q}`, want.city), calls[i].Function.Arguments)
		result := fmt.Sprintf("%s: %d degrees", want.city, want.degrees)
		params.Messages = append(params.Messages, openai.ToolMessage(result, calls[i].ID))
	}
	require.Equal(t, summary, send(t, params).Message.Content)
}

func schema() openai.ChatCompletionNewParamsResponseFormatUnion {
	return openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "weather", Strict: openai.Bool(true), Schema: object(map[string]any{
				"city": map[string]any{"type": "string"}, "degrees": map[string]any{"type": "integer"},
			}),
		},
	}}
}

func fillsSchema(t *testing.T, send sender) {
	params := said(question)
	params.ResponseFormat = schema()
	require.JSONEq(t, `{"city":"Paris","degrees":21}`, send(t, params).Message.Content)
}

func picture(url string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Messages: []openai.ChatCompletionMessageParamUnion{
		openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.TextContentPart("What is this?"),
			openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url}),
		}),
	}}
}

func sees(t *testing.T, send sender, data string) {
	require.Equal(t, seen, send(t, picture("data:image/png;base64,"+data)).Message.Content)
}

func (d dialect) refuses(t *testing.T, r refusal) {
	params := said(question)
	if r.Tools {
		params.Tools = tools()
	}
	if r.Schema {
		params.ResponseFormat = schema()
	}
	if r.History {
		call := openai.ChatCompletionMessageToolCallUnion{
			ID: "call_1", Type: "function",
			Function: openai.ChatCompletionMessageFunctionToolCallFunction{Name: "get_weather", Arguments: `{"city":"Paris"}`},
		}
		asked := openai.ChatCompletionMessage{ToolCalls: []openai.ChatCompletionMessageToolCallUnion{call}}
		params.Messages = append(params.Messages, asked.ToParam(), openai.ToolMessage("Paris: 21 degrees", "call_1"))
	}
	var fields []option.RequestOption
	for name, value := range r.Fields {
		fields = append(fields, option.WithJSONSet(name, value))
	}
	d.refusesParams(t, r.Names, params, fields...)
}

func (d dialect) refusesParams(t *testing.T, names string, params openai.ChatCompletionNewParams, more ...option.RequestOption) {
	t.Helper()
	params.Model = d.name
	_, err := d.client.Chat.Completions.New(context.Background(), params, more...)
	failure := requireStatus(t, err, http.StatusBadRequest)
	require.Equal(t, "unsupported", failure.Code)
	require.Contains(t, failure.Message, names)
	stream := d.client.Chat.Completions.NewStreaming(context.Background(), params, more...)
	defer stream.Close()
	require.False(t, stream.Next())
	require.Equal(t, "unsupported", requireStatus(t, stream.Err(), http.StatusBadRequest).Code)
}

// fails: a message in prose for those who read prose, an error for those who parse.
func (d dialect) fails(t *testing.T) {
	params := said("Please fail.")
	params.Model = d.name
	fixed, err := d.client.Chat.Completions.New(context.Background(), params)
	require.NoError(t, err)
	require.Equal(t, "fallback", tierOf(t, fixed.RawJSON()))

	params.ResponseFormat = schema()
	_, err = d.client.Chat.Completions.New(context.Background(), params, option.WithMaxRetries(2))
	failure := requireStatus(t, err, http.StatusServiceUnavailable)
	require.Equal(t, "false", failure.Response.Header.Get("X-Should-Retry"))
}
