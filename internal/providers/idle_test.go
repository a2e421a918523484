package providers

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// idler is a transport that is told to close what is idle.
type idler struct {
	http.RoundTripper
	told int
}

func (i *idler) CloseIdleConnections() { i.told++ }

// Whoever keeps connections lets go of them.
func TestProvidersCloseIdleConnections(t *testing.T) {
	for _, name := range Dialects() {
		if name == "script" {
			continue // has none
		}
		transport := &idler{}
		p, err := New(Settings{Name: "p", Dialect: name, BaseURL: "http://127.0.0.1:1", APIKey: "sk", Region: "us-east-1", Transport: transport})
		require.NoError(t, err, name)
		p.(IdleCloser).CloseIdleConnections()
		require.Equal(t, 1, transport.told, name)
	}
}
