// Command upstream is the model provider of the client suites: every dialect on one loopback port, each below a path of
// its own name.
//
// Its one idea: it plays a model that does what it is asked, and so tells whether the question arrived. What to answer
// it reads from the request in the dialect's own words: tools are called, results of tools are repeated, a schema is
// filled in, an image is measured. A request at another path, or with another key, is refused.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"holdfast/internal/providers/providertest"
)

const (
	bodyLimit  = 1 << 20
	headerWait = 5 * time.Second
	key        = "upstream-key"
	toolName   = "get_weather"
)

func main() {
	if err := serve(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// serve listens on a free port of the loopback and says its URL, until the process is ended.
func serve(out io.Writer) error {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: headerWait}
	return server.Serve(listener)
}

// dialect is where a provider's dialect has what the upstream looks for: the end of the path, the header of the key,
// and as gjson's paths the names of the tools, the results of tools, the schema of the answer and the base64 of images.
type dialect struct {
	wire                          providertest.Dialect
	path, header, scheme          string
	tools, results, schema, image string
}

func dialects() map[string]dialect {
	const bearer = "Bearer "
	openAI := dialect{
		wire: providertest.OpenAI, path: "/v1/chat/completions", header: "Authorization", scheme: bearer,
		tools: "tools.#.function.name", results: `messages.#(role=="tool")#.content`,
		schema: "response_format.json_schema.schema", image: "messages.#.content.#.image_url.url",
	}
	azure := openAI
	azure.path, azure.header, azure.scheme = "/openai/deployments/scripted-azure/chat/completions", "Api-Key", ""
	return map[string]dialect{
		"openai": openAI,
		"azure":  azure,
		"dashscope": {
			wire: providertest.DashScope, path: "/generation", header: "Authorization", scheme: bearer,
			tools: "parameters.tools.#.function.name", results: `input.messages.#(role=="tool")#.content`,
			schema: "parameters.response_format.json_schema.schema", image: "input.messages.#.content.#.image",
		},
		"ollama": {
			wire: providertest.Ollama, path: "/api/chat", header: "Authorization", scheme: bearer,
			tools: "tools.#.function.name", results: `messages.#(role=="tool")#.content`,
			schema: "format", image: "messages.#.images",
		},
		"anthropic": {
			wire: providertest.Anthropic, path: "/v1/messages", header: "X-Api-Key",
			tools: "tools.#.name", results: `messages.#.content.#(type=="tool_result")#.content`,
			schema: "output_config.format.schema", image: "messages.#.content.#.source.data",
		},
		"bedrock": {
			wire: providertest.Bedrock, path: "/converse-stream", header: "Authorization", scheme: bearer,
			tools: "toolConfig.tools.#.toolSpec.name", results: "messages.#.content.#.toolResult.content",
			schema: "outputConfig.textFormat.structure.jsonSchema.schema", image: "messages.#.content.#.image.source.bytes",
		},
		"gemini": {
			wire: providertest.Gemini, path: ":streamGenerateContent", header: "X-Goog-Api-Key",
			tools: "tools.#.functionDeclarations.#.name", results: "contents.#.parts.#.functionResponse.response",
			schema: "generationConfig.responseJsonSchema", image: "contents.#.parts.#.inlineData.data",
		},
	}
}

// answer plays one call.
func answer(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	d, known := dialects()[name]
	if !known || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, d.path) {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		http.Error(w, "read the request", http.StatusBadRequest)
		return
	}
	b := d.behaviour(body)
	if r.Header.Get(d.header) != d.scheme+key {
		b = providertest.Fails(http.StatusUnauthorized)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	upstream := providertest.New(d.wire, b)
	defer upstream.Close()
	upstream.ServeHTTP(w, r)
}

// behaviour is what a request gets.
func (d dialect) behaviour(body []byte) providertest.Behaviour {
	results := degrees(gjson.GetBytes(body, d.results).Raw)
	tools := leaves(gjson.GetBytes(body, d.tools))
	images := leaves(gjson.GetBytes(body, d.image))
	schema := gjson.GetBytes(body, d.schema)
	switch {
	case bytes.Contains(body, []byte("Please fail.")):
		return providertest.Fails(http.StatusServiceUnavailable)
	case len(images) > 0:
		return sees(images)
	case len(results) > 0:
		return providertest.Says("The tools say ", strings.Join(results, " and "), ".")
	case slices.Contains(tools, toolName):
		return calls("Paris", "Oslo")
	case len(tools) > 0:
		return providertest.Fails(http.StatusBadRequest)
	case schema.Exists():
		return fills(schema)
	}
	return providertest.Says("Hello", " from ", "upstream.")
}

// sees says how large the images are, which it can't without their bytes.
func sees(images []string) providertest.Behaviour {
	size := 0
	for _, image := range images {
		_, data, found := strings.Cut(image, ",") // of a data URL
		if !found {
			data = image
		}
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return providertest.Fails(http.StatusBadRequest)
		}
		size += len(raw)
	}
	return providertest.Says("I see ", fmt.Sprintf("%d image of %d bytes", len(images), size), ".")
}

// calls asks for the weather of cities, all at once.
func calls(cities ...string) providertest.Behaviour {
	var b providertest.Behaviour
	for i, city := range cities {
		b.Tools = append(b.Tools, providertest.Tool{
			ID: fmt.Sprintf("call_%d", i+1), Name: toolName, Arguments: fmt.Sprintf(`{"city":%q}`, city),
		})
	}
	return b
}

// fills answers as the schema wants it; Bedrock has the schema as text.
func fills(schema gjson.Result) providertest.Behaviour {
	if schema.Type == gjson.String {
		schema = gjson.Parse(schema.Str)
	}
	if !schema.Get("properties.city").Exists() || !schema.Get("properties.degrees").Exists() {
		return providertest.Fails(http.StatusBadRequest)
	}
	return providertest.Says(`{"city":`, `"Paris","degrees"`, `:21}`)
}

var measured = regexp.MustCompile(`[A-Z][a-z]+: [0-9]+ degrees`)

// degrees are the measurements in the results of tools, however a dialect wraps them.
func degrees(raw string) []string { return measured.FindAllString(raw, -1) }

// leaves are the strings in nested arrays.
func leaves(r gjson.Result) []string {
	if r.Type == gjson.String {
		return []string{r.Str}
	}
	var out []string
	if r.IsArray() {
		for _, inner := range r.Array() {
			out = append(out, leaves(inner)...)
		}
	}
	return out
}
