package needs

import (
	"cmp"
	"net"
	"path"
	"slices"
	"strings"
)

// clients are programs that connect to the host in their arguments.
var clients = table{
	"curl wget http https xh aria2c hurl":                                   webClient,
	"psql pg_dump pg_restore createdb dropdb pg_isready pgbench createuser": database("5432", "PGHOST", "PGPORT", "/var/run/postgresql/.s.PGSQL.", "/tmp/.s.PGSQL."),
	"mysql mysqldump mysqladmin mariadb mariadb-dump":                       database("3306", "MYSQL_HOST", "MYSQL_TCP_PORT", "/var/run/mysqld/mysqld.sock", "/tmp/mysql.sock"),
	"redis-cli valkey-cli":                                                  database("6379", "", ""),
	"mongosh mongo mongodump":                                               database("27017", "", ""),
	"nc ncat netcat telnet":                                                 hostAndPort,
	"ping ping6 traceroute mtr dig nslookup host whois": func(c *command) {
		if c.sub("-c -W -i -t -p") != "" {
			c.add(Network, "", "asks other machines directly")
		}
	},
	"ssh scp sftp mosh": func(c *command) {
		c.escape("connects over SSH with your keys, which are hidden from commands in the sandbox")
	},
	"rsync": func(c *command) {
		for _, word := range c.operands("-e --rsh --exclude --include --filter") {
			if strings.Contains(word, "::") || strings.HasPrefix(word, "rsync://") {
				c.add(Network, "", "copies files over the network")
			} else if scpLike().MatchString(word) || strings.Contains(word, ":/") {
				c.escape("connects over SSH with your keys, which are hidden from commands in the sandbox")
			}
		}
	},
}

// webValued are the options of curl, wget and the like that have a value other than
// a URL.
const webValued = "-H --header -d --data --data-raw --data-binary --data-urlencode --json -F --form -o --output -O --output-document -X --request -u --user " +
	"-A --user-agent -e --referer -b --cookie -c --cookie-jar -T --upload-file -w --write-out -m --max-time --connect-timeout --retry --retry-delay --cacert --cert --key " +
	"-P --directory-prefix --post-data --tries -t --timeout --resolve --interface -r --range --limit-rate --unix-socket -x --proxy --method --body-data"

func webClient(c *command) {
	valued := webValued
	if c.name == "curl" {
		valued = strings.Replace(valued, " -O ", " ", 1)
	}
	if file := c.value("--unix-socket", "--abstract-unix-socket"); file != "" {
		c.socket("connects to it", c.abs(file))
		return
	}
	for i, a := range c.args { // of curl: -sfo FILE
		if c.name == "curl" && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a[len(a)-1:], "oHdFXuAebcTwmx") && !strings.ContainsAny(a[1:len(a)-1], "oHdFXuAebcTwmx") {
			c.args[i] = "-" + a[len(a)-1:]
		}
	}
	urls := append(c.operands(valued), c.values("--url", "-x", "--proxy")...)
	for _, word := range urls {
		if (c.name == "http" || c.name == "https" || c.name == "xh") && (strings.ToUpper(word) == word && !strings.Contains(word, ".") || strings.ContainsAny(word, "=@")) {
			continue // a method or data
		}
		if strings.HasPrefix(word, ":") { // of httpie
			word = "localhost" + word
		}
		if !strings.Contains(word, "://") {
			word = "http://" + word
		}
		host := hostOf(word)
		if scheme, _, _ := strings.Cut(word, "://"); host != "" && (scheme == "ftp" || scheme == "ssh" || scheme == "sftp" || scheme == "file") {
			if scheme != "file" {
				c.add(Network, host, "connects to it")
			}
			continue
		}
		if host == unknownHost {
			c.add(Network, "", "connects to a host that is only known at run time")
			continue
		}
		c.hosts("connects to it", host)
		if follows := c.name != "curl" || c.has("--location") || slices.ContainsFunc(c.args, func(a string) bool {
			return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "L")
		}); follows && host == "github.com" {
			c.hosts("is redirected to it", "*.githubusercontent.com", "codeload.github.com")
		}
	}
}

// database returns what finds the server of a database: a URL, the option -h, a
// variable, or the usual socket or port of this machine.
func database(port, hostVariable, portVariable string, sockets ...string) func(*command) {
	return func(c *command) {
		const why = "connects to the database"
		at := cmp.Or(c.value("-h", "--host"), c.Getenv(hostVariable))
		number := cmp.Or(c.value("-p", "--port"), c.Getenv(portVariable), port)
		for _, a := range c.args {
			scheme, _, ok := strings.Cut(a, "://")
			_, short, joined := strings.Cut(a, "-h")
			_, dsn, _ := strings.Cut(a, "host=")
			switch {
			case ok && scheme != "http" && scheme != "https":
				at = cmp.Or(hostOf(a), at)
				if h, p, err := net.SplitHostPort(at); err == nil {
					if at = h; p != "80" {
						number = p
					}
				}
			case joined && strings.HasPrefix(a, "-h") && short != "":
				at = short
			case dsn != "":
				at, _, _ = strings.Cut(dsn, " ")
			}
		}
		if strings.Trim(number, "0123456789") != "" {
			number = port
		}
		switch {
		case strings.HasPrefix(at, "/"):
			c.socket(why, path.Join(at, ".s.PGSQL."+number), at)
		case at == "" && len(sockets) > 0:
			for _, s := range sockets {
				if strings.HasSuffix(s, ".") {
					s += number
				}
				c.socket(why, s)
			}
		case at == "" || IsLoopback(at):
			c.hosts(why, net.JoinHostPort(cmp.Or(at, "localhost"), number))
		default:
			c.add(Network, net.JoinHostPort(at, number), why)
		}
	}
}

func hostAndPort(c *command) {
	words := c.operands("-w -i -q -p -s")
	if len(words) < 2 || c.has("-l") {
		return
	}
	if IsLoopback(words[0]) {
		c.hosts("connects to it", net.JoinHostPort(words[0], words[1]))
	} else {
		c.add(Network, net.JoinHostPort(words[0], words[1]), "connects to it")
	}
}

// installers change what is installed on the machine.
var installers = table{
	"apt apt-get aptitude": installing("install update upgrade remove purge autoremove dist-upgrade full-upgrade build-dep download source clean"),
	"dnf yum zypper apk":   installing("install update upgrade remove add del in up rm"),
	"pacman":               func(c *command) { installing(c.sub(""))(c) },
	"brew port":            installing("install update upgrade uninstall reinstall tap untap cask services link unlink bundle cleanup outdated search info"),
	"snap flatpak":         installing("install update refresh remove uninstall"),
	"choco winget scoop":   installing("install update upgrade uninstall"),
	"rustup":               installing("install update default toolchain target component override self"),
	"nvm fnm volta asdf mise pyenv rbenv nodenv sdk": installing("install uninstall use global update upgrade default"),
}

func installing(subs string) func(*command) {
	return func(c *command) {
		if one(c.sub(""), subs) {
			c.escape("installs software outside the workspace")
		}
	}
}

// signedIn are programs that need the user's sign-in.
var signedIn = table{
	"gh glab hub tea aws gcloud gsutil az kubectl oc k9s flyctl fly vercel netlify heroku firebase stripe supabase pulumi doctl linode-cli wrangler railway ansible ansible-playbook vault cdk sam serverless": func(c *command) {
		if one(c.sub(""), "completion help version") {
			return
		}
		c.escape("needs your sign-in, which is hidden from commands in the sandbox")
	},
}
