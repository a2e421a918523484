package providers

// newOllama makes a provider of Ollama's native dialect.
func newOllama(s Settings) Provider { return nil }
