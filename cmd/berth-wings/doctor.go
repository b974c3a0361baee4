package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/egg"
	"berth/cmd/berth-wings/importer"
	"berth/cmd/berth-wings/node"
)

// checkTime bounds one check of the doctor.
const checkTime = 10 * time.Second

func newDoctor() *cobra.Command {
	var b bridge
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the node's file, berth, the panel, and what they lack for the node",
		Long: "Check the node's file, berth and its token, the panel, the listener, and what they lack for the servers of\n" +
			"the node. It exits with 1 if something keeps the node from working.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.examine(cmd.Context(), os.Environ(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&b.path, "config", defaultConfig, "`path` of the node's file")
	return cmd
}

// check is a check of the doctor. It returns the fact. An error is what is wrong, and what to do; a warning
// lets the node work.
type check struct {
	name string
	do   func(ctx context.Context, o node.Options) (fact string, err error)
}

// warning is an error that lets the node work.
type warning struct{ error }

// examine prints the result of each check.
func (b bridge) examine(ctx context.Context, environ []string, out io.Writer) error {
	failed := false
	report := func(name, fact string, err error) {
		status := "ok  "
		if err != nil {
			status, fact = "warn", err.Error()
			if !errors.As(err, new(warning)) {
				status, failed = "FAIL", true
			}
		}
		fmt.Fprintf(out, "%s  %-7s  %s\n", status, name, clean(fact))
	}
	o, err := b.open(environ, slog.New(slog.DiscardHandler))
	report("file", b.path, err)
	if err == nil {
		defer o.Berth.Close()
		for _, c := range []check{{"berth", checkBerth}, {"panel", checkPanel}, {"node", checkNode}, {"import", checkImport}} {
			ctx, cancel := context.WithTimeout(ctx, checkTime)
			fact, err := c.do(ctx, o)
			cancel()
			report(c.name, fact, err)
		}
	}
	if failed {
		return errors.New("the node does not work")
	}
	return nil
}

// checkBerth checks that berth answers, the token's scope, and the features that a node needs.
func checkBerth(ctx context.Context, o node.Options) (string, error) {
	host, err := o.Berth.Node(ctx)
	if err != nil {
		return "", fmt.Errorf("berth: %w: check BERTH_URL and the token of BERTH_TOKEN_FILE", err)
	}
	if _, err := o.Berth.Tokens().List(ctx); err != nil {
		return "", fmt.Errorf("the token is not one of the scope admin: %w: see `berth token create --help`", err)
	}
	if !host.Engine.Reachable {
		return "", warning{errors.New("berth's engine does not answer: run `berth doctor`")}
	}
	return "berth " + host.Version + " answers", nil
}

// checkPanel checks that the panel knows the node.
func checkPanel(ctx context.Context, o node.Options) (string, error) {
	list, refused, err := o.Panel.Servers(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: check remote, token_id and token of the file: the panel's page of the node shows them", err)
	}
	if err := errors.Join(refused...); err != nil {
		return "", warning{err}
	}
	return fmt.Sprintf("%s has %d servers for this node", o.File.Config.Remote, len(list)), nil
}

// checkNode checks that the bridge listens.
func checkNode(ctx context.Context, o node.Options) (string, error) {
	api := o.File.Config.API
	address := net.JoinHostPort(strings.Replace(api.Host, "0.0.0.0", "127.0.0.1", 1), strconv.Itoa(api.Port))
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("%w: start it by `systemctl start berth-wings`", err)
	}
	return "listens at " + address, conn.Close()
}

// checkImport checks that wings has no server any more.
func checkImport(ctx context.Context, o node.Options) (string, error) {
	data := o.File.Config.System.Data
	left, err := filepath.Glob(filepath.Join(data, "*-*-*-*-*"))
	if err != nil {
		return "", err
	}
	count := 0
	for _, folder := range left {
		if egg.IsServerUUID(filepath.Base(folder)) {
			count++
		}
	}
	if count > 0 {
		return "", warning{fmt.Errorf("%s has the files of %d servers, which do not start: run `berth-wings import`", data, count)}
	}
	marked, err := o.Berth.Volumes().List(ctx, importer.Label)
	if err == nil && len(marked) > 0 {
		err = warning{fmt.Errorf("the import of %d servers was interrupted: run `berth-wings import`", len(marked))}
	}
	return "no server is left to wings", err
}
