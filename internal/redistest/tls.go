package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TLS is a server that listens with TLS too, and the files of who connects to it.
type TLS struct {
	*Server
	Secure    string // host:port, on the address that the certificate is for
	CA        string // who signed the certificates of the server and of Cert
	Other     string // another authority
	Cert, Key string // of a client
	Domain    string // the certificate is for this name too
}

// StartTLS starts a server that asks its clients for certificates, or not.
func StartTLS(tb testing.TB, clients bool) *TLS {
	tb.Helper()
	dir, domain := tb.TempDir(), "redis.example"
	ca, caKey := authority(tb, dir, "ca")
	_, _ = authority(tb, dir, "other")
	signed(tb, dir, "server", domain, ca, caKey)
	signed(tb, dir, "client", "", ca, caKey)
	port, err := freePort()
	if err != nil {
		tb.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	asks := "no"
	if clients {
		asks = "yes"
	}
	return &TLS{
		Server: Start(tb, "--tls-port", strconv.Itoa(port), "--tls-cert-file", in("server.pem"), "--tls-key-file", in("server.key"),
			"--tls-ca-cert-file", in("ca.pem"), "--tls-auth-clients", asks),
		Secure: "127.0.0.1:" + strconv.Itoa(port), CA: in("ca.pem"), Other: in("other.pem"), Cert: in("client.pem"), Key: in("client.key"), Domain: domain,
	}
}

func authority(tb testing.TB, dir, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := issue(tb, dir, name, c, c, nil)
	return c, key
}

func signed(tb testing.TB, dir, name, domain string, by *x509.Certificate, key *ecdsa.PrivateKey) {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if domain != "" {
		c.DNSNames = []string{domain}
	}
	issue(tb, dir, name, c, by, key)
}

// issue writes a certificate and its key; one without a signer signs itself.
func issue(tb testing.TB, dir, name string, c, by *x509.Certificate, with *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	if with == nil {
		with = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		tb.Fatal(err)
	}
	own, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{"pem": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "EC PRIVATE KEY", Bytes: own}} {
		if err := os.WriteFile(filepath.Join(dir, name+"."+file), pem.EncodeToMemory(b), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return key
}
