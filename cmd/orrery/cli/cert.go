package cli

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orrerydb/orrery/cmd/orrery/transfer/door"
)

// certCmd shows the certificate of a server, and has programs trust it.
type certCmd struct {
	Data, Endpoint string
	PEM, Install   bool
	To             string
}

func (c *certCmd) command(s *streams) *cobra.Command {
	cmd := &cobra.Command{Use: "cert", Short: "Show the certificate of a server, or have programs trust it."}
	f := cmd.PersistentFlags()
	f.StringVar(&c.Data, "data", "data", "Data `DIR` of the server.")
	urlVar(f, &c.Endpoint, "endpoint", "", "`URL` of the server's NoSQL API, in place of --data.")
	show := &cobra.Command{Use: "show", Short: "Show the certificate: its names, validity and fingerprint.",
		Args: noArguments, RunE: runs(func() error { return c.show(s.out) })}
	show.Flags().BoolVar(&c.PEM, "pem", false, "Print the certificate itself, in PEM.")
	trust := &cobra.Command{Use: "trust", Short: "Write the certificate to a file, and say how each runtime is told.",
		Args: noArguments, RunE: runs(func() error { return c.trust(s.out) })}
	trust.Flags().StringVar(&c.To, "to", "orrery.crt", "`FILE` for the certificate.")
	trust.Flags().BoolVar(&c.Install, "install", false, "Add it to the system's certificates too (needs the rights).")
	cmd.AddCommand(show, trust)
	return cmd
}

// largestPEM is the size of the largest certificate in bytes.
const largestPEM = 1 << 20

// read returns the certificate, without its key: from the data directory, or from the server.
func (c *certCmd) read() (text []byte, cert *x509.Certificate, err error) {
	if c.Endpoint != "" {
		text, err = fetch(strings.TrimSuffix(c.Endpoint, "/") + "/_explorer/emulator.pem")
	} else {
		text, err = os.ReadFile(filepath.Join(c.Data, "tls", "orrery.pem"))
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%s has no certificate: no server has served it, or the server has another (--tls-cert)",
				c.Data)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	var public []byte
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue // the key stays where it is
		}
		public = append(public, pem.EncodeToMemory(block)...)
		if cert == nil {
			if cert, err = x509.ParseCertificate(block.Bytes); err != nil {
				return nil, nil, errors.New("the certificate is malformed")
			}
		}
	}
	if cert == nil {
		return nil, nil, errors.New("the file has no certificate")
	}
	return public, cert, nil
}

// fetch reads a URL of a server, without verifying its certificate: that is what is asked for. Over HTTP nobody is
// asked who they are either: compare the fingerprint with that of the server's machine.
func fetch(url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := door.Client(0)
	client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, unreached(url, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, largestPEM))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, res.Status)
	}
	return text, err
}

func (c *certCmd) show(w io.Writer) error {
	text, cert, err := c.read()
	if err != nil {
		return err
	}
	if c.PEM {
		_, err = w.Write(text)
		return err
	}
	var names []string
	names = append(names, cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	_, err = fmt.Fprintf(w, "names        %s\nvalid        %s to %s\nissued by    %s\nfingerprint  SHA-256 %X\n",
		strings.Join(names, ", "), cert.NotBefore.Format(time.DateOnly), cert.NotAfter.Format(time.DateOnly),
		cert.Issuer, sha256.Sum256(cert.Raw))
	return err
}

// runtimes say how a runtime is told to trust the certificate in {file}. docs/operations.md has the same table.
var runtimes = [][2]string{
	{"curl", "curl --cacert {file} .."},
	{"Go", "SSL_CERT_FILE={file} (Linux; elsewhere the system's certificates)"},
	{"Node", "NODE_EXTRA_CA_CERTS={file}"},
	{"Python", "SSL_CERT_FILE={file}, and REQUESTS_CA_BUNDLE={file} for azure-cosmos"},
	{"Java", "keytool -importcert -noprompt -alias orrery -file {file} -keystore trust.p12 -storepass changeit, then " +
		"-Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"},
	{".NET", "the system's certificates (--install); on Linux also SSL_CERT_FILE={file}"},
	{"mongosh", "mongosh --tls --tlsCAFile {file} .."},
}

func (c *certCmd) trust(w io.Writer) error {
	text, _, err := c.read()
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.To, text, 0o644); err != nil {
		return err
	}
	file, err := filepath.Abs(c.To)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The certificate is in %s\n", file)
	steps := system(file)
	for _, step := range steps {
		if !c.Install {
			fmt.Fprintf(&b, "%-8s %s\n", "system", strings.Join(step, " "))
			continue
		}
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(step, " "), err, firstLine(string(out)))
		}
		fmt.Fprintf(&b, "%-8s done: %s\n", "system", strings.Join(step, " "))
	}
	for _, r := range runtimes {
		fmt.Fprintf(&b, "%-8s %s\n", r[0], strings.ReplaceAll(r[1], "{file}", file))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// system returns the commands that add a certificate to the system's.
func system(file string) [][]string {
	switch runtime.GOOS {
	case "darwin":
		return [][]string{{"security", "add-trusted-cert", "-d", "-r", "trustRoot", "-k",
			"/Library/Keychains/System.keychain", file}}
	case "windows":
		return [][]string{{"certutil", "-addstore", "-f", "Root", file}}
	}
	if _, err := os.Stat("/etc/pki/ca-trust/source/anchors"); err == nil {
		return [][]string{{"cp", file, "/etc/pki/ca-trust/source/anchors/orrery.crt"}, {"update-ca-trust"}}
	}
	return [][]string{{"cp", file, "/usr/local/share/ca-certificates/orrery.crt"}, {"update-ca-certificates"}}
}
