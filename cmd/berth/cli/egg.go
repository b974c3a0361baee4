package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"berth/api/egg"
	"berth/api/intent"
	v1 "berth/api/v1"
)

func newImportCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{Use: "import", Short: "Make containers from the files of other panels",
		Example: "  berth import egg minecraft.json --name survival --port 25565"}, newImportEgg(c))
}

// eggFlags are the flags of `berth import egg`.
type eggFlags struct {
	request                         v1.EggRequest
	variables, strict, apply, start bool
}

func newImportEgg(c *connector) *cobra.Command {
	f := &eggFlags{}
	cmd := c.command(&cobra.Command{
		Use:   "egg <file>",
		Short: "Print or create the container that an egg describes",
		Long: "Print or create the container that an egg describes, a game definition of the Pterodactyl and Pelican\n" +
			"panels (PTDL v1 and v2, PLCN v1 to v3; JSON or YAML; - is standard input). The spec is one for\n" +
			"`berth apply -f`. With --apply the command creates the volume, adds the ports to the pool if they are\n" +
			"not there, and creates the container; if one of these fails, it undoes those before.\n\n" +
			"Nothing is asked: a variable that is required and has no default is an error, and so is a value that\n" +
			"breaks a rule of the egg. What the spec does not have is reported on standard error.",
		Example: "  berth import egg minecraft.json --variables\n" +
			"  berth import egg minecraft.json --name survival --set VERSION=1.21 --image 'Java 21' --port 25565 --memory 4GiB --apply --start\n" +
			"  berth import egg minecraft.json --name survival --volume 3f2a91c0 --port 127.0.0.1:25565 > survival.yaml",
		Args: cobra.ExactArgs(1),
	}, nil)
	w := addEggFlags(cmd, f)
	create := c.run(func(cmd *cobra.Command, d *daemon, args []string) error {
		got, err := f.read(cmd, args[0])
		if err != nil {
			return err
		}
		return f.create(cmd, d, got.Spec, w)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case f.apply && !f.variables:
			return create(cmd, args)
		case w.enabled || cmd.Flags().Changed("timeout"):
			return withCode(exitUsage, errors.New("--wait and --timeout need --apply"))
		}
		got, err := f.read(cmd, args[0])
		if err != nil {
			return err
		}
		if f.variables {
			return printVariables(cmd, got.Variables)
		}
		if got.Spec.VolumeID == "" {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "note: volume_id is missing: name a volume with --volume, or create all with --apply")
		}
		return printSpec(cmd, got.Spec)
	}
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault) // a file
	return cmd
}

func addEggFlags(cmd *cobra.Command, f *eggFlags) *waiting {
	flags, r := cmd.Flags(), &f.request
	flags.StringVar(&r.InternalID, "name", "", "`id` of the container")
	flags.StringVar(&r.VolumeID, "volume", "", "`id` of its volume (default with --apply: a new one)")
	flags.StringVar(&r.Image, "image", "", "`name` of one of the egg's images, or its reference (default the first)")
	flags.StringVar(&r.Startup, "startup", "", "`name` of one of the egg's startup commands (default the first)")
	flags.StringVar(&r.User, "user", "", "`user` of the server, such as 1000:1000 (default 988:988)")
	flags.Func("set", "`name=value` of a variable; can be repeated", func(text string) error {
		name, value, is := strings.Cut(text, "=")
		if !is || name == "" {
			return errors.New("must be name=value")
		}
		if r.Variables == nil {
			r.Variables = map[string]string{}
		}
		r.Variables[name] = value
		return nil
	})
	flags.Func("port", "`port` of the host, tcp and udp, or address:port (address default 0.0.0.0); the first is the game's; can "+
		"be repeated", func(text string) error {
		ports, err := eggPorts(text)
		r.Ports = append(r.Ports, ports...)
		return err
	})
	flags.Func("memory",
		"`size` that the game may use, such as 4GiB; the limit of the container is some percent higher (default no limit)",
		func(text string) error {
			size, err := v1.ParseSize(text)
			r.Memory = int64(size)
			return err
		})
	flags.BoolVar(&f.variables, "variables", false, "list the variables with their values and rules instead")
	flags.BoolVar(&f.strict, "strict", false, "fail if the spec lacks something of the egg")
	flags.BoolVar(&f.apply, "apply", false, "create the volume, the ports and the container")
	flags.BoolVar(&f.start, "start", false, "let the container run once it is installed")
	complete := func(list func(v1.EggImport) []cobra.Completion) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return offersOfEgg(cmd, args, list), cobra.ShellCompDirectiveNoFileComp
		}
	}
	choice := func(c v1.EggChoice) string { return c.Name }
	for flag, list := range map[string]func(v1.EggImport) []cobra.Completion{
		"image":   func(e v1.EggImport) []cobra.Completion { return names(e.Images, choice) },
		"startup": func(e v1.EggImport) []cobra.Completion { return names(e.Startups, choice) },
		"set": func(e v1.EggImport) []cobra.Completion {
			return names(e.Variables, func(v v1.EggVariable) string { return v.Name + "=" + v.Value + "\t" + printable(v.Title) })
		},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete(list)) // the flag exists
	}
	w := new(waiting)
	flags.BoolVar(&w.enabled, "wait", false, "wait until the container is installed, and runs with --start")
	addTimeoutFlag(cmd, w)
	return w
}

// offersOfEgg returns what a shell may offer from the egg that an argument names.
func offersOfEgg(cmd *cobra.Command, args []string, list func(v1.EggImport) []cobra.Completion) []cobra.Completion {
	if len(args) == 0 || args[0] == "-" {
		return nil
	}
	text, err := readEgg(args[0], cmd.InOrStdin())
	if err != nil {
		return nil
	}
	got, err := egg.Import(v1.EggRequest{Egg: text})
	if err != nil {
		return nil
	}
	return list(got)
}

// readEgg reads a file, or standard input, up to the size of an egg.
func readEgg(path string, stdin io.Reader) (string, error) {
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, egg.MaxSize+1))
	return string(text), err
}

// eggPorts returns the tcp and the udp port of "port" or "address:port".
func eggPorts(text string) ([]v1.Port, error) {
	address, digits := "0.0.0.0", text
	if host, rest, err := net.SplitHostPort(text); err == nil {
		address, digits = host, rest
	}
	ip, isIP := intent.CanonicalIP(address)
	port, isPort := intent.ParsePort(digits)
	if !isIP || !isPort {
		return nil, errors.New("must be a port between 1 and 65535, or address:port such as 127.0.0.1:25565")
	}
	return []v1.Port{{IP: ip, Port: port, Protocol: "tcp"}, {IP: ip, Port: port, Protocol: "udp"}}, nil
}

// read imports the egg of a file, and reports what the spec lacks on standard error.
func (f *eggFlags) read(cmd *cobra.Command, path string) (got v1.EggImport, err error) {
	if !f.variables && !intent.IsContainerID(f.request.InternalID) {
		return got, withCode(exitUsage, errors.New("--name is required: 1 to 63 letters, digits, _, . or -, which begin with a letter or digit"))
	}
	if f.request.Egg, err = readEgg(path, cmd.InOrStdin()); err != nil {
		return got, err
	}
	if got, err = egg.Import(f.request); err != nil {
		return got, fmt.Errorf("%s: %w", path, err)
	}
	if f.variables {
		return got, nil
	}
	if f.start {
		got.Spec.Power = v1.PowerOn
	}
	var faults []error
	for _, v := range got.Variables {
		if v.Error != "" {
			faults = append(faults, fmt.Errorf("variable %s (%s): %s: give --set %s=value", v.Name, v.Title, v.Error, v.Name))
		}
	}
	for _, note := range got.Notes {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "note: "+printable(note))
	}
	if f.strict && len(got.Notes) > 0 {
		faults = append(faults, fmt.Errorf("%s: the spec lacks %d things of the egg, and --strict was given", path, len(got.Notes)))
	}
	return got, errors.Join(faults...)
}

// printVariables prints the variables of an egg.
func printVariables(cmd *cobra.Command, list []v1.EggVariable) error {
	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if len(list) == 0 && isText(cmd) {
		return printNone(cmd, "The egg has no variables.")
	}
	return show(cmd, raw, names(list, func(v v1.EggVariable) string { return v.Name }), func(t *table) {
		t.head("VARIABLE", "VALUE", "RULES", "EDITABLE", "TITLE", "DESCRIPTION*", "ERROR")
		for _, v := range list {
			t.row(v.Name, v.Value, strings.Join(v.Rules, "|"), yesNo(v.Editable), v.Title, v.Description, v.Error)
		}
	})
}

// printSpec prints a spec as a manifest of `berth apply`.
func printSpec(cmd *cobra.Command, spec v1.ContainerSpec) error {
	raw, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return printManifest(cmd, raw, spec.InternalID)
}

// printManifest prints the JSON of a spec as a manifest of `berth apply`.
func printManifest(cmd *cobra.Command, raw []byte, id string) error {
	if !isText(cmd) {
		return show(cmd, raw, []string{id}, nil)
	}
	text, err := yaml.JSONToYAML(raw)
	if err == nil {
		_, err = cmd.OutOrStdout().Write(text)
	}
	return err
}

// undoTimeout bounds the calls that undo what was done before a failure.
const undoTimeout = 30 * time.Second

// create creates the volume, the ports and the container. If one of them fails, it undoes those
// before, also if the command was interrupted.
func (f *eggFlags) create(cmd *cobra.Command, d *daemon, spec v1.ContainerSpec, w *waiting) (err error) {
	ctx := cmd.Context()
	var undo []func(context.Context) error
	defer func() {
		if err == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		for _, step := range slices.Backward(undo) {
			err = errors.Join(err, step(ctx))
		}
	}()
	for _, p := range spec.Ports {
		ref := v1.PortRef{IP: p.IP, Port: p.Port, Protocol: p.Protocol}
		switch err := d.Ports().Add(ctx, ref); {
		case errors.Is(err, v1.ErrPortExists):
			continue
		case err != nil:
			return fmt.Errorf("port %d/%s: %w", p.Port, p.Protocol, err)
		}
		undo = append(undo, func(ctx context.Context) error {
			return failedUndo(fmt.Sprintf("the port %d/%s stays in the pool", p.Port, p.Protocol), d.Ports().Delete(ctx, ref))
		})
	}
	if spec.VolumeID == "" {
		v, err := d.Volumes().Create(ctx, v1.VolumeSpec{Name: spec.InternalID})
		if err != nil {
			return fmt.Errorf("volume: %w", err)
		}
		spec.VolumeID = v.VolumeID
		undo = append(undo, func(ctx context.Context) error {
			return failedUndo("the volume "+v.VolumeID+" stays", d.Volumes().Delete(ctx, v.VolumeID))
		})
	}
	if err := d.Containers().Create(ctx, spec); err != nil {
		return fmt.Errorf("%s%s: %w", containerPrefix, spec.InternalID, err)
	}
	undo = nil // the container is there, whatever it waits for
	if !w.enabled {
		return printDone(cmd, d.raw, spec.InternalID, "%s%s created with volume %s", containerPrefix, spec.InternalID, spec.VolumeID)
	}
	g := goal{name: "installed", states: []v1.Phase{v1.Ready, v1.Exit}}
	if f.start {
		g = goalOf("start")
	}
	return w.wait(cmd, d, []string{spec.InternalID}, g)
}

// failedUndo returns the error of a step that could not be undone.
func failedUndo(left string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", left, err)
}
