package providers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/providers/providertest"
)

// BenchmarkChunk is what one chunk of text costs in each dialect, read from a burst of sixteen.
func BenchmarkChunk(b *testing.B) {
	openAI := func(delta string) string {
		return data(`{"id":"chatcmpl-DuLddZr4DRHJOM0r9PiSog78i9fIY","object":"chat.completion.chunk","created":1782321917,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" some"` + delta + `},"finish_reason":null}],"usage":null,"obfuscation":"6PfkJQFAw"}`)
	}
	for _, bench := range []struct {
		name    string
		dialect providertest.Dialect
		event   string
	}{
		{"openai/right", providertest.OpenAI, openAI("")},
		{"openai/mended", providertest.OpenAI, openAI(`,"role":"assistant"`)},
		{"azure", providertest.OpenAI, data(`{"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"},"self_harm":{"filtered":false,"severity":"safe"},"sexual":{"filtered":false,"severity":"safe"},"violence":{"filtered":false,"severity":"safe"}},"delta":{"content":" some"},"finish_reason":null,"index":0,"logprobs":null}],"created":1782321917,"id":"chatcmpl-DuLdd","model":"gpt-4.1","object":"chat.completion.chunk","system_fingerprint":"fp_3eed"}`)},
		{"dashscope", providertest.DashScope, "id:2\nevent:result\n:HTTP_STATUS/200\ndata:{\"output\":{\"choices\":[{\"message\":{\"content\":\" some\",\"role\":\"assistant\"},\"finish_reason\":\"null\"}]},\"usage\":{\"total_tokens\":28,\"input_tokens\":16,\"output_tokens\":12},\"request_id\":\"d4cc\"}\n\n"},
		{"ollama", providertest.Ollama, `{"model":"gemma3:1b","created_at":"2025-05-19T09:26:59.678947Z","message":{"role":"assistant","content":" some"},"done":false}` + "\n"},
		{"anthropic", providertest.Anthropic, events(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some"}      }`)},
		{"bedrock", providertest.Bedrock, bedrockFrames(`contentBlockDelta {"contentBlockIndex":0,"delta":{"text":" some"},"p":"abcdefghijkl"}`)},
		{"gemini", providertest.Gemini, geminiEvents(`{"candidates": [{"content": {"parts": [{"text": " some"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 148,"candidatesTokenCount": 1,"totalTokenCount": 149},"modelVersion": "gemini-2.5-pro","responseId": "2wCz"}`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := dialectStream(bench.dialect, &endless{text: []byte(strings.Repeat(bench.event, 16))})
			c, err := s.Next()
			require.NoError(b, err)
			require.Equal(b, SignalContent, c.Signal)
			ahead := s.(Buffering)
			b.SetBytes(int64(len(bench.event)))
			b.ReportAllocs()
			for b.Loop() {
				ahead.Buffered()
				if _, err := s.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
