package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// attackerKey is the variable of the environment that makes this program an attacker:
// a target as JSON.
const attackerKey = "BERTH_SOAK_TARGET"

// target is what a hostile client knows.
type target struct{ Addr, SFTP, Token, Volume string }

// tally counts the requests of a hostile client.
type tally struct{ Requests, Refused int64 }

func TestMain(m *testing.M) {
	if text := os.Getenv(attackerKey); text != "" {
		attackUntilEOF(text)
		return
	}
	if os.Getenv(senderKey) != "" {
		sendHandles()
		return
	}
	os.Exit(m.Run())
}

// attackUntilEOF attacks a target until standard input ends, and prints its tally.
func attackUntilEOF(text string) {
	var to target
	if err := json.Unmarshal([]byte(text), &to); err != nil {
		panic(err)
	}
	attacks, err := chosenAttacks(os.Getenv(attacksKey))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := newHostileClient(to)
	var attack sync.WaitGroup
	h.attack(ctx, &attack, attacks)
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	attack.Wait()
	_ = json.NewEncoder(os.Stdout).Encode(tally{h.requests.Load(), h.refused.Load()})
}

// attackFrom runs a hostile client until ctx ends, as a process of its own with the lowest
// priority: an attacker's processors are not those of the host.
func attackFrom(ctx context.Context, t *testing.T, to target) (n tally) {
	text, err := json.Marshal(to)
	assert.NoError(t, err)
	cmd := exec.Command("nice", "-n", "39", os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), attackerKey+"="+string(text)), os.Stderr
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stdin, err := cmd.StdinPipe()
	if !assert.NoError(t, errors.Join(err, cmd.Start())) {
		return n
	}
	<-ctx.Done()
	err = errors.Join(stdin.Close(), cmd.Wait())
	assert.NoError(t, errors.Join(err, json.Unmarshal(stdout.Bytes(), &n)))
	return n
}
