package providers

// newOpenAI makes a provider of OpenAI's dialect.
func newOpenAI(s Settings) Provider { return nil }
