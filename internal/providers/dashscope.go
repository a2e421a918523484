package providers

// newDashScope makes a provider of DashScope's native dialect.
func newDashScope(s Settings) Provider { return nil }
