package needs

import (
	"cmp"
	"path"
	"strings"
)

// daemons are programs that work through a server on this machine.
var daemons = table{
	"docker docker-compose nerdctl":                                        dockerCommand,
	"podman podman-compose buildah skopeo":                                 func(c *command) { c.escape("starts containers, which the sandbox prevents") },
	"systemctl loginctl timedatectl hostnamectl service launchctl initctl": func(c *command) { c.escape("controls services of this machine") },
	"nix nix-build nix-shell nix-env nix-store":                            func(c *command) { c.socket("asks the Nix daemon", "/nix/var/nix/daemon-socket/socket") },
	"adb":                            func(c *command) { c.escape("connects to devices") },
	"ollama":                         func(c *command) { c.hosts("asks the Ollama server", "localhost:11434") },
	"code cursor idea open xdg-open": func(c *command) { c.escape("opens a program on your desktop") },
	"pbcopy pbpaste xclip xsel wl-copy wl-paste": func(c *command) { c.escape("uses your clipboard") },
	"kill":                           killCommand,
	"pkill killall":                  func(c *command) { c.escape("ends processes of this machine, which are invisible in the sandbox") },
	"crontab at":                     func(c *command) { c.escape("changes what this machine runs later") },
	"ssh-add ssh-keygen ssh-copy-id": func(c *command) { c.escape("needs your SSH keys, which are hidden from commands in the sandbox") },
	"gpg gpg2 pass op bw age":        func(c *command) { c.escape("needs your keys, which are hidden from commands in the sandbox") },
	"tmux screen":                    func(c *command) { c.escape("connects to a server outside the sandbox") },
}

// dockerCommand needs the daemon's socket, which gives it control of the machine.
func dockerCommand(c *command) {
	sub := c.sub("-H --host -c --context --config -l --log-level -f --file -p --project-name")
	switch {
	case sub == "" || c.name == "docker-compose" && sub == "config", sub == "compose" && c.has("config", "version"), sub == "context" && c.has("ls"):
		return
	case one(sub, "login logout push buildx scan trust"):
		c.escape("needs your sign-in and state below ~/.docker, which are hidden from commands in the sandbox")
		return
	}
	const why = "asks the container daemon, which can do anything on this machine"
	at := cmp.Or(c.value("-H", "--host"), c.Getenv("DOCKER_HOST"))
	if file, ok := strings.CutPrefix(at, "unix://"); ok {
		c.socket(why, file)
		return
	}
	if strings.HasPrefix(at, "ssh://") {
		c.escape("connects to a container daemon over SSH")
		return
	}
	if host, ok := strings.CutPrefix(at, "tcp://"); ok {
		if IsLoopback(strings.SplitN(host, ":", 2)[0]) {
			c.hosts(why, strings.TrimSuffix(host, "/"))
		} else {
			c.add(Network, strings.TrimSuffix(host, "/"), why)
		}
		return
	}
	runtime := cmp.Or(c.Getenv("XDG_RUNTIME_DIR"), "/nonexistent")
	c.socket(why, "/var/run/docker.sock", path.Join(runtime, "docker.sock"), path.Join(c.Home, ".docker/run/docker.sock"),
		path.Join(c.Home, ".docker/desktop/docker.sock"), path.Join(c.Home, ".colima/default/docker.sock"), path.Join(c.Home, ".orbstack/run/docker.sock"))
}

// socket adds the first of the sockets that exists.
func (c *command) socket(why string, paths ...string) {
	for _, p := range paths {
		if c.Exists(p) {
			c.add(Socket, p, why)
			return
		}
	}
}

func killCommand(c *command) {
	for _, word := range c.operands("-s -n") {
		if strings.Trim(word, "0123456789") == "" {
			c.escape("ends a process of this machine, which is invisible in the sandbox")
		}
	}
}
