package cache

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tunnel stands between a store and its database. It can fall silent, and speak TLS where the database doesn't.
type tunnel struct {
	url string

	mu    sync.Mutex
	conns []net.Conn // to the database
	mute  map[net.Conn]bool
}

func newTunnel(t *testing.T, databaseURL string, secure *tls.Config) *tunnel {
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	database := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u.Host = listener.Addr().String()
	tun := &tunnel{url: u.String(), mute: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { tun.carry(client, database, secure) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		tun.mu.Lock()
		for _, c := range tun.conns {
			_ = c.Close()
		}
		tun.mu.Unlock()
		all.Wait()
	})
	return tun
}

// carry passes bytes both ways until one side ends.
func (tun *tunnel) carry(client net.Conn, database string, secure *tls.Config) {
	defer func() { _ = client.Close() }()
	if secure != nil { // the protocol asks for TLS with eight bytes, and S is yes
		if _, err := io.ReadFull(client, make([]byte, 8)); err != nil {
			return
		}
		if _, err := client.Write([]byte("S")); err != nil {
			return
		}
		client = tls.Server(client, secure)
	}
	server, err := net.Dial("tcp", database)
	if err != nil {
		return
	}
	tun.mu.Lock()
	tun.conns = append(tun.conns, server)
	tun.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		tun.pass(client, server, server)
		_ = client.Close()
	})
	tun.pass(server, client, server)
	_ = server.Close()
	back.Wait()
}

func (tun *tunnel) pass(to io.Writer, from io.Reader, server net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		tun.mu.Lock()
		mute := tun.mute[server]
		tun.mu.Unlock()
		if mute {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// silence drops from now on what the connections that there are carry; new ones work.
func (tun *tunnel) silence() {
	tun.mu.Lock()
	defer tun.mu.Unlock()
	for _, c := range tun.conns {
		tun.mute[c] = true
	}
}

// selfSigned makes a certificate for an address, and a file of it.
func selfSigned(t *testing.T, address string) (tls.Certificate, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(address)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}
