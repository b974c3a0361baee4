package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	pathpkg "path"
	"runtime/debug"
	"strings"

	"berth/api/ui"
)

type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
	DependsOn  []relation  `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"` // application or library
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"` // hexadecimal
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type relation struct {
	Ref  string   `json:"ref"`
	Refs []string `json:"dependsOn"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/sbom VERSION BINARY")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the bill of a binary of this version of berth.
func write(out io.Writer, version, path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	top := module(pathpkg.Base(info.Path), version)
	top.Type, top.Hashes = "application", []hash{{"SHA-256", hex.EncodeToString(sum[:])}}
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs.") || s.Key == "GOARCH" || s.Key == "GOOS" {
			top.Properties = append(top.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := bill{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{top}}
	b.Components = append(b.Components, module("std", info.GoVersion))
	for _, dep := range info.Deps {
		c, err := linked(dep)
		if err != nil {
			return err
		}
		b.Components = append(b.Components, c)
	}
	if info.Path == "berth/cmd/berth" { // the program that has the page
		page, err := embedded()
		if err != nil {
			return err
		}
		b.Components = append(b.Components, page...)
	}
	all := relation{Ref: top.Ref}
	for _, c := range b.Components {
		all.Refs = append(all.Refs, c.Ref)
	}
	b.DependsOn = []relation{all}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

// linked returns the component of a module, or of the one that replaces it.
func linked(m *debug.Module) (component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	c := module(m.Path, m.Version)
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil {
		return c, fmt.Errorf("%s: checksum: %w", m.Path, err)
	}
	if len(sum) > 0 {
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}} // of the module's files, as in go.sum
	}
	return c, nil
}

// embedded returns the components of the libraries of the page, which come from npm.
func embedded() (list []component, err error) {
	libraries, err := ui.Libraries()
	for _, l := range libraries {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(l.Integrity, "sha512-"))
		if err != nil {
			return nil, fmt.Errorf("%s: checksum: %w", l.Name, err)
		}
		purl := "pkg:npm/" + l.Name + "@" + l.Version
		list = append(list, component{Type: "library", Ref: purl, Name: l.Name, Version: l.Version, PURL: purl,
			Hashes: []hash{{"SHA-512", hex.EncodeToString(sum)}}}) // of the package
	}
	return list, err
}

func module(path, version string) component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}
