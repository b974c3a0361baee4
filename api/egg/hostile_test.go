package egg_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/hack/test/eggs"
)

// withVariables returns an egg with a list of variables in JSON.
func withVariables(list string) string {
	return `{"meta":{"version":"PTDL_v2"},"docker_images":{"a":"a:1"},"startup":"x","config":{"files":"{}","startup":"{}","stop":"^C"},"variables":[` + list + `]}`
}

func oneVariable(rules string) string {
	return withVariables(fmt.Sprintf(`{"env_variable":"A","default_value":"x","rules":%q}`, rules))
}

// TestHostileEggs has eggs that take much time or memory if they are parsed without bounds.
func TestHostileEggs(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	cases := map[string]struct{ egg, want string }{
		"large":             {strings.Repeat(" ", egg.MaxSize+1), "larger than 1048576 bytes"},
		"expression of 1MB": {oneVariable("regex:/" + strings.Repeat("(a{1,90}b){1,9}", 70_000) + "/"), "larger than 1048576 bytes"},
		"million variables": {withVariables(strings.TrimSuffix(strings.Repeat(`{},`, 300_000), ",")), "more than 20000 values"},
		"many variables":    {withVariables(strings.TrimSuffix(strings.Repeat(`{"env_variable":"A"},`, 600), ",")), "variables: must be at most 500"},
		"many rules":        {oneVariable(strings.Repeat("max:1|", 100_000)), "rules: must be at most 50"},
		"bomb":              {bomb, "an alias is not supported"},
		"flow of yaml":      {"a: [" + strings.Repeat("[],", 300_000) + "]", "more than 20000 values"},
		"lines of yaml":     {strings.Repeat("- a\n", 250_000), "more than 20000 values"},
		"colons of yaml":    {"a: {" + strings.Repeat("b,", 400_000) + "}", "more than 20000 values"},
		"deep json":         {`{"a":` + strings.Repeat("[", 500_000), "nested more than 32 levels"},
		"deep yaml":         {strings.Repeat("[", 30_000), "YAML"},
		"deep yaml blocks":  {strings.Repeat("- ", 30_000) + "a", ""},
		"json in json":      {`{"meta":{"version":"PTDL_v2"},"docker_images":{"a":"a:1"},"config":{"files":"{\"a\":` + strings.Repeat("[", 400_000) + `"}}`, "config.files: the egg is nested"},
		"name twice":        {`{"meta":{"version":"PTDL_v2"},"meta":{"version":"PTDL_v2"}}`, "duplicate object member name"},
		"name twice (yaml)": {"meta: 1\nmeta: 2\n", `"meta" is there twice`},
		"two documents":     {"a: 1\n---\nb: 1\n", "several YAML documents"},
		"no map":            {"[]", "must be a JSON or YAML map"},
		"nothing":           {"", "must be a JSON or YAML map"},
		"not UTF-8":         {"{\"a\":\"\xff\"}", "not UTF-8"},
		"complex name":      {"? [a, b]\n: 1\n", "a name must be a text"},
		"no image":          {`{"meta":{"version":"PTDL_v2"},"docker_images":[]}`, "names no image"},
		"version of a bomb": {`{"meta":{"version":"` + strings.Repeat("x", 1000) + `"}}`, "…"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := egg.Import(v1.EggRequest{Egg: c.egg})
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, &v1.Error{Code: v1.InvalidRequest})
			require.ErrorContains(t, err, c.want)
			require.Less(t, len(err.Error()), 500)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "bytes allocated")
		})
	}
}

// TestHostileRules has expressions whose compilation or match would be slow elsewhere.
func TestHostileRules(t *testing.T) {
	for _, rule := range []string{
		"regex:/" + strings.Repeat("(a{1,90}b){1,9}", 30) + "/", "regex:/" + strings.Repeat("[^a]{1000}", 49) + "/", `regex:/(((((a{1,9}){1,9}){1,9}){1,9}){1,9})/`, "regex:/(a+)+$/", "regex:/(?<=a)b/", "regex:", "regex:/", "regex:aa", `regex:\a\`,
		"between:1", "max:", "max:x", "digits_between:,", "in:" + strings.Repeat(`"`, 999), "size:1e999",
	} {
		r := v1.EggRequest{Egg: oneVariable(rule), Variables: map[string]string{"A": strings.Repeat("a", 100_000) + "!"}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := egg.Import(r)
		runtime.ReadMemStats(&after)
		require.NoError(t, err, rule)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), "%s", rule)
		require.LessOrEqual(t, len(got.Variables[0].Error), 500)
	}
}

// FuzzImport imports anything twice: the answers are equal, and bounded by the egg.
func FuzzImport(f *testing.F) {
	wild, extra := eggs.Set(f)
	for i, e := range append(wild, extra...) {
		if i%8 == 0 || e.Genre == "" {
			f.Add(string(e.Content), "A", "b")
		}
	}
	f.Fuzz(func(t *testing.T, text, name, value string) {
		r := v1.EggRequest{Egg: text, InternalID: "a", Variables: map[string]string{name: value}}
		got, err := egg.Import(r)
		if err != nil {
			require.ErrorIs(t, err, &v1.Error{Code: v1.InvalidRequest})
			return
		}
		again, err := egg.Import(r)
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.NotEmpty(t, got.Spec.Image)
	})
}
