package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
)

// version is set by the build. Between two releases it has a suffix: 0.1.0-5-g1a2b3c4.
var version = "0.0.0"

// release returns version without its suffix: the panel compares three numbers.
func release() string {
	end := strings.IndexAny(version, "-+")
	if end < 0 {
		return version
	}
	return version[:end]
}

// defaultConfig is where the panel's page of a node expects its file.
const defaultConfig = "/etc/pelican/config.yml"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "berth-wings:", err)
		os.Exit(1) //nolint:gocritic // the context ends with the process
	}
}

func newRoot() *cobra.Command {
	var b bridge
	root := &cobra.Command{Use: "berth-wings", Short: "A node for panels of the Pterodactyl and Pelican family, by berth",
		Long: "A node for panels of the Pterodactyl and Pelican family. To the panel it is a node like wings; what it\n" +
			"does is done by a berth daemon. It reads the node's file, as the panel hands it out, and serves until it\n" +
			"is ended: servers run on meanwhile.\n\n" +
			"The daemon is that of $BERTH_URL (default " + defaultURL + "). Its token, of the scope admin, is\n" +
			"$BERTH_TOKEN, or the first line of the file that $BERTH_TOKEN_FILE names. Its SFTP is at\n" +
			"$BERTH_SFTP (default " + defaultSFTP + "): the node's own has the port of the file.",
		Example: "  berth-wings configure --panel-url https://panel.example.com --token papp_… --node 1\n" +
			"  BERTH_TOKEN_FILE=/etc/berth/wings.token berth-wings",
		Version: version, SilenceErrors: true, SilenceUsage: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.run(cmd.Context(), os.Environ(), cmd.ErrOrStderr())
		},
	}
	root.Flags().StringVar(&b.path, "config", defaultConfig, "`path` of the node's file")
	root.AddCommand(newConfigure(), newImport(), newDoctor())
	return root
}

func newConfigure() *cobra.Command {
	var s config.Setup
	var node, key string
	var insecure bool
	cmd := &cobra.Command{
		Use:   "configure",
		Short: "Write the node's file with what the panel has for it",
		Long: "Write the node's file with what the panel has for it. The panel's page of the node shows this command\n" +
			"with its flags, for wings: type berth-wings in its place. The key is an application key with the right to\n" +
			"read nodes. allowed_mounts is left empty, for the operator to fill.",
		Example: "  berth-wings configure --panel-url https://panel.example.com --token papp_… --node 1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if s.Node, err = strconv.Atoi(node); err != nil || s.Node < 1 {
				return errors.New("--node: must be the number of the node, as the panel's page shows it")
			}
			s.Key = v1.Secret(key)
			client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,
				TLSClientConfig: &tls.Config{InsecureSkipVerify: insecure}}}
			if err := config.Configure(cmd.Context(), s, client); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "wrote", s.Path)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&s.Panel, "panel-url", "p", "", "`address` of the panel")
	flags.StringVarP(&key, "token", "t", "", "application `key` of the panel")
	flags.StringVarP(&node, "node", "n", "", "`number` of the node")
	flags.StringVarP(&s.Path, "config-path", "c", defaultConfig, "`path` of the file")
	flags.BoolVar(&s.Override, "override", false, "replace a file that is there")
	flags.BoolVar(&insecure, "allow-insecure", false, "accept any certificate of the panel")
	for _, name := range []string{"panel-url", "token", "node"} {
		_ = cmd.MarkFlagRequired(name) // the flag exists
	}
	return cmd
}
