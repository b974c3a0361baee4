package kubernetes

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// selfSigned returns a certificate as a kubelet makes it for itself, and its key.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("node-1.example.com", nil, nil)
	require.NoError(t, err)
	return certificate, key
}

// TestCertificateOfAKubelet: a kubelet that the cluster's authority does not vouch for is asked
// nothing, until its certificate is configured.
func TestCertificateOfAKubelet(t *testing.T) {
	certificate, key := selfSigned(t)
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"pods": []}`) }))
	kubelet.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	kubelet.StartTLS()
	defer kubelet.Close()
	ip, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	require.NoError(t, err)
	node := testNode("n1", core1.ConditionTrue)
	node.Status.Addresses = []core1.NodeAddress{{Type: core1.NodeInternalIP, Address: ip}, {Type: core1.NodeHostName, Address: "node-1.example.com"}}
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answers := map[string]any{
			"/version": map[string]string{"gitVersion": "v1.37.2"}, "/api/v1/nodes": core1.NodeList{Items: []core1.Node{*node}}, "/api/v1/nodes/n1": node,
		}
		_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
	}))
	defer api.Close()
	config := Config{Kubeconfig: filepath.Join(t.TempDir(), "config")}
	require.NoError(t, os.WriteFile(config.Kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: k, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: k}}]
current-context: c
`, api.URL), 0o600))
	other, _ := selfSigned(t)
	for _, test := range []struct {
		ca    []byte // empty: not configured
		cause string
	}{{nil, "certificate"}, {other, "certificate"}, {certificate, ""}} {
		config.KubeletCA = ""
		if test.ca != nil {
			config.KubeletCA = filepath.Join(t.TempDir(), "ca.crt")
			require.NoError(t, os.WriteFile(config.KubeletCA, test.ca, 0o600))
		}
		info, err := Info(t.Context(), config)
		require.NoError(t, err)
		require.Equal(t, "1.37.2", info.Version)
		require.Equal(t, test.cause == "", info.StatsError == "", info.StatsError)
		require.Contains(t, info.StatsError, test.cause)
	}
}
