package container

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestCommand(t *testing.T) {
	shell := func(line string) []string { return []string{"/bin/sh", "-c", line} }
	for line, want := range map[string][]string{
		"":                              nil,
		" \t":                           nil,
		"java -jar 'my server.jar' a=b": {"java", "-jar", "my server.jar", "a=b"},
		`say "hello world"`:             {"say", "hello world"},
		"echo $HOME":                    shell("echo $HOME"),
		"a && b":                        shell("a && b"),
		"ls *.jar":                      shell("ls *.jar"),
		"echo 'no end":                  shell("echo 'no end"),
		"exec java -jar x.jar":          shell("exec java -jar x.jar"),
		"LANG=C java -jar x.jar":        shell("LANG=C java -jar x.jar"),
		"a\nb":                          shell("a\nb"),
	} {
		require.Equal(t, want, command(line), line)
	}
}

func TestInstallScriptCarriageReturns(t *testing.T) {
	spec := installerSpec(v1.Container{Spec: v1.ContainerSpec{Image: "i", InstallScript: "set -e\r\necho hi\r\n"}}, "/v")
	require.Equal(t, []string{"/bin/sh", "-c", "set -e\necho hi\n"}, spec.Command)
}
