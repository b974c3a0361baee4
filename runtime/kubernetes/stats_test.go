package kubernetes

import (
	"crypto/tls"
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
	e := against(t, testEngine(), func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, http.StatusOK, map[string]any{
			"/version": map[string]string{"gitVersion": "v1.37.2"}, "/api/v1/nodes": core1.NodeList{Items: []core1.Node{*node}}, "/api/v1/nodes/n1": node,
		}[r.URL.Path])
	})
	config := e.cfg
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
