package providers

// IdleCloser is implemented by providers that keep connections: one that is no longer used leaves them otherwise until
// they time out.
type IdleCloser interface {
	// CloseIdleConnections closes the connections that no call uses; those of running calls go when these end, if no
	// other call comes.
	CloseIdleConnections()
}

// CloseIdleConnections implements IdleCloser.
func (p *openAI) CloseIdleConnections() { p.client.dropIdle() }

// CloseIdleConnections implements IdleCloser.
func (p *dashScope) CloseIdleConnections() { p.client.dropIdle() }

// CloseIdleConnections implements IdleCloser.
func (p *ollama) CloseIdleConnections() { p.client.dropIdle() }

// CloseIdleConnections implements IdleCloser.
func (p *anthropic) CloseIdleConnections() { p.client.dropIdle() }

// CloseIdleConnections implements IdleCloser.
func (p *bedrock) CloseIdleConnections() { p.client.dropIdle() }

// CloseIdleConnections implements IdleCloser.
func (p *gemini) CloseIdleConnections() { p.client.dropIdle() }
