package configfile

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGames sets values in configuration files in the style of popular game servers.
// Exactly the listed lines change: each replaces "old" by "new", and "" adds a line.
func TestGames(t *testing.T) {
	for _, c := range []struct {
		file, format string
		set          object
		lines        []string // old, new, …
	}{
		{"server.properties", "properties",
			object{"server-port": "25570", "motd": "Grüße", "level-seed": "-1", "resource-pack": "https://packs.example/a.zip?x=1", "view-distance": "8"},
			[]string{"server-port=25565", "server-port=25570", `motd=A Minecraft Server \u00a7a\u2764`, `motd=Gr\u00FC\u00DFe`, "level-seed=", "level-seed=-1", "", "view-distance=8"}},
		{"paper-global.yml", "yaml",
			object{"proxies.velocity.enabled": "true", "proxies.velocity.secret": "it's", "more-updates.extra": "false",
				"messages.no-permission": "no", "unsupported-settings.limits.zombie": "7", "unsupported-settings.worlds.1": "world_end", "spam-limiter.new": "1"},
			[]string{"    enabled: false", "    enabled: true", "    secret: ''", "    secret: 'it''s'", "  tab-spam-limit: 500", "  tab-spam-limit: 500\n  new: 1", "  extra: true", "  extra: false",
				`  no-permission: "&cI'm sorry, but you do not have permission."`, `  no-permission: "no"`,
				"  worlds: [world, world_nether]", "  worlds: [world, world_end]", "  limits: {all: 10, zombie: 5}", "  limits: {all: 10, zombie: 7}"}},
		{"GameUserSettings.ini", "ini",
			object{"ServerSettings.MaxPlayers": "32", "ServerSettings.RCONPort": "27021", "/Script/ShooterGame.ShooterGameUserSettings.Version": "6",
				"SessionSettings.SessionName": "Other #2", "SessionSettings.Port": "7777"},
			[]string{"MaxPlayers=10", "MaxPlayers=32", "Version=5", "Version=6", "SessionName=My Server #1", "SessionName=Other #2\r\nPort=7777", "RCONPort=27020", "RCONPort=27021"}},
		{"PalWorldSettings.ini", "ini", object{"/Script/Pal.PalGameWorldSettings.OptionSettings": `(PublicPort=8212,ServerName="Mine; yours")`},
			[]string{`OptionSettings=(Difficulty=None,DayTimeSpeedRate=1.000000,ServerName="Default Palworld Server",PublicPort=8211)`, `OptionSettings=(PublicPort=8212,ServerName="Mine; yours")`}},
		{"serverconfig.xml", "xml",
			object{"/ServerSettings/property[@name='ServerPort']/@value": "26905", "/ServerSettings/property[@name='ServerPassword']/@value": "a'b", "/ServerSettings/property[1]/@value": "Mine & yours"},
			[]string{`value="My Game Host" />`, `value="Mine &amp; yours" />`, `value="26900"/>`, `value="26905"/>`, `value='' />`, `value='a&#39;b' />`}},
		{"ServerHostSettings.json", "json",
			object{"Port": "9900", "Rcon.Enabled": "true", "Rcon.Password": "1234", "Events.0.Multipliers.XP": "2", "Events.1.Multipliers.XP": "3", "Rcon.Host": "0.0.0.0"},
			[]string{`"Port": 9876,`, `"Port": 9900,`, `"Enabled": false,`, `"Enabled": true,`, "    \"Password\": \"\",", "    \"Password\": \"1234\",", `"Port": 25575`, "\"Port\": 25575,\n    \"Host\": \"0.0.0.0\"",
				`{"XP": 1.50, "Loot": 2e0}`, `{"XP": 2, "Loot": 2e0}`, `{"Day": 7, "Multipliers": {}}`, `{"Day": 7, "Multipliers": {"XP": 3}}`}},
		{"server.cfg", "text", object{"hostname ": `hostname "Mine"`, "sv_lan": "sv_lan 1", "maxplayers": "maxplayers 16"},
			[]string{`hostname "Server"`, `hostname "Mine"`, "sv_lan 0", "sv_lan 1", "", "maxplayers 16"}},
	} {
		before, err := os.ReadFile("testdata/" + c.file)
		require.NoError(t, err)
		want := string(before)
		for i := 0; i < len(c.lines); i += 2 {
			if c.lines[i] == "" {
				want += c.lines[i+1] + "\n"
				continue
			}
			require.Equal(t, 1, strings.Count(want, c.lines[i]), "%s: %s", c.file, c.lines[i])
			want = strings.Replace(want, c.lines[i], c.lines[i+1], 1)
		}
		after, err := applySet(c.format, before, c.set)
		require.NoError(t, err, c.file)
		require.Equal(t, want, string(after), c.file)
	}
}
