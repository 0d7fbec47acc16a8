package sensitive

import (
	"slices"
	"sync"
)

// Class says what a path must be protected from.
type Class string

// The classes.
const (
	Secret    Class = "secret"    // from every access to its content
	Protected Class = "protected" // from being written
)

// Scope says where a pattern applies.
type Scope string

// The scopes. [Match] takes a Home pattern for a path at any depth, as there may
// be other home directories; a sandbox hides it below the user's own.
const (
	System    Scope = "system"     // from the root of the file system
	Home      Scope = "home"       // below a home directory
	AgentHome Scope = "agent-home" // below the agent's own directory
	Anywhere  Scope = "anywhere"   // at any depth
)

// Entry is a pattern for paths, with everything below them.
type Entry struct {
	// Pattern has path elements separated by slashes. In an element, * matches
	// any characters. A slash at the end says that it is a directory.
	Pattern string
	// Except lists patterns for the last element of a path that is no match.
	Except []string
	Class  Class
	Scope  Scope
	Reason string // what is there
}

// Entries returns the list.
func Entries() []Entry { return slices.Clone(entries()) }

var entries = sync.OnceValue(func() []Entry {
	var all []Entry
	for _, g := range slices.Concat(secretGroups, protectedGroups) {
		for _, p := range g.patterns {
			all = append(all, Entry{Pattern: p, Except: g.except, Class: g.class, Scope: g.scope, Reason: g.reason})
		}
	}
	return all
})

// group is entries that share everything but the pattern.
type group struct {
	class    Class
	scope    Scope
	reason   string
	patterns []string
	except   []string
}

// samples are files that show the form of one with secrets.
var samples = []string{"*.example", "*.sample", "*.template", "*.dist", "*.tpl", "example.*", "sample.*", "template.*", "*.example.*", "*.sample.*", "*.template.*"}

// sources are names of source code and documents: these may be about secrets, but
// do not contain them.
var sources = slices.Concat(samples, []string{
	"*.go", "*.rs", "*.java", "*.kt", "*.c", "*.h", "*.cc", "*.cpp", "*.hpp", "*.cs", "*.swift", "*.scala", "*.proto", "*.md", "*.rst",
})

var secretGroups = []group{
	{Secret, System, "passwords, keys and rights of the system", []string{
		"etc/shadow", "etc/shadow-", "etc/gshadow", "etc/gshadow-", "etc/sudoers", "etc/sudoers.d/", "etc/ssl/private/", "etc/pki/tls/private/",
		"etc/kubernetes/", "etc/krb5.keytab", "etc/rancher/", "etc/wireguard/", "etc/openvpn/", "etc/letsencrypt/", "etc/NetworkManager/system-connections/",
		"run/secrets/", "var/run/secrets/",
	}, nil},
	{Secret, System, "environment, memory and open files of a process", []string{
		"proc/*/environ", "proc/*/mem", "proc/*/root", "proc/*/cwd", "proc/*/fd", "proc/*/map_files",
		"proc/*/task/*/environ", "proc/*/task/*/mem", "proc/*/task/*/root", "proc/*/task/*/cwd", "proc/*/task/*/fd",
	}, nil},
	{Secret, AgentHome, "keys, sign-ins, conversations and outputs of this agent", []string{
		"settings.json", "mcp/auth/", "sessions/", "context/", "snapshots/", "service/",
	}, nil},
	{Secret, Home, "keys, sign-ins and conversations of this agent", []string{".agent/mcp/auth/", ".agent/sessions/", ".agent/snapshots/", ".agent/service/"}, nil},
	{Secret, Home, "keys for SSH, GnuPG, age, WireGuard and signing", []string{
		".ssh/", ".gnupg/", ".config/age/", ".config/sops/", ".age/", ".minisign/", ".sigstore/", ".putty/", ".step/",
	}, nil},
	{Secret, Home, "credentials of cloud services", []string{
		".aws/", ".azure/", ".config/gcloud/", "AppData/Roaming/gcloud/", ".oci/", ".bluemix/", ".aliyun/", ".tccli/", ".ovhrc", ".ovh.conf", ".hcloud/", ".config/hcloud/",
		".config/doctl/", ".config/linode-cli", ".config/scw/", ".config/heroku/", ".config/fly/", ".fly/", ".config/netlify/", ".netlify/config.json",
		".config/vercel/", ".local/share/com.vercel.cli/", ".vercel/auth.json", ".config/railway/", ".railway/", ".render/", ".config/configstore/",
		".config/.wrangler/", ".wrangler/config/", ".cloudflared/", ".config/stripe/", ".supabase/", ".config/supabase/", ".config/firebase/", ".config/planetscale/",
		".config/neonctl/", ".config/turso/", ".config/upstash/", ".snowflake/", ".snowsql/", ".databrickscfg", ".databricks/", ".boto", ".s3cfg", ".config/rclone/", ".mc/",
		".config/ngrok/", ".ngrok2/", ".config/op/", ".sentryclirc", ".config/sentry", ".akamai*", ".edgerc", ".config/tailscale/",
	}, nil},
	{Secret, Home, "credentials for git and code forges", []string{
		".git-credentials", ".config/git/credentials", ".gitcookies", ".git-credential-cache/", ".cache/git/credential/",
		".config/gh/", "AppData/Roaming/GitHub CLI/", ".config/hub", ".config/glab-cli/", ".config/glab/", ".config/tea/", ".config/github-copilot/",
		".config/jj/credentials*", ".gitlab-token", ".github_token", ".config/lab/",
	}, nil},
	{Secret, Home, "credentials for containers, clusters and infrastructure", []string{
		".kube/", ".docker/config.json", ".docker/contexts/", ".dockercfg", ".config/containers/auth.json", ".config/helm/registry/", ".config/helm/repositories.yaml",
		".terraform.d/credentials.tfrc.json", ".terraform.d/credentials*", ".terraformrc", ".tofurc", ".config/opentofu/", ".pulumi/credentials.json", ".pulumi/accounts.json",
		".vault-token", ".vault_pass", ".vault-pass", ".ansible/vault*", ".ansible_vault*", ".nomad-token", ".consul-token", ".chef/", ".config/argocd/", ".argocd/", ".minikube/profiles/",
		".rancher/", ".config/k9s/", ".talos/", ".config/talos/", ".vagrant.d/insecure_private_key*",
	}, nil},
	{Secret, Home, "credentials of package managers and registries", []string{
		".npmrc", ".pypirc", ".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/credentials*", ".local/share/uv/credentials/", ".config/pypoetry/auth.toml",
		".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".local/share/gem/credentials", ".bundle/config", ".m2/settings.xml", ".m2/settings-security.xml",
		".gradle/gradle.properties", ".ivy2/.credentials", ".sbt/.credentials", ".composer/auth.json", ".config/composer/auth.json", ".nuget/NuGet/NuGet.Config", ".config/NuGet/NuGet.Config",
		".conan/credentials*", ".conan2/credentials*", ".condarc", ".hex/hex.config", ".pub-cache/credentials.json", ".config/dart/pub-credentials.json", ".jfrog/", ".config/hatch/",
	}, nil},
	{Secret, Home, "credentials for databases and hosts", []string{
		".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".pgpass", "AppData/Roaming/postgresql/pgpass.conf", ".my.cnf", ".mylogin.cnf", ".mongorc.js", ".mongoshrc.js", ".rediscli_auth",
		".dbshell", ".htpasswd", ".smbcredentials", ".fetchmailrc", ".msmtprc", ".mutt/", ".config/msmtp/", ".mbsyncrc", ".s3ql/", ".davfs2/", ".ncftp/", ".config/filezilla/", ".filezilla/", ".config/lftp/",
		".config/sqlectron", ".local/share/DBeaverData/", ".dbvis/",
	}, nil},
	{Secret, Home, "tokens of models and agents", []string{
		".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".qwen/oauth_creds.json",
		".local/share/opencode/auth.json", ".local/share/opencode/mcp-auth.json", ".config/opencode/auth.json", ".config/goose/secrets.yaml", ".config/crush/", ".local/share/crush/",
		".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface/token", ".kaggle/kaggle.json", ".config/kaggle/kaggle.json", ".config/openai*", ".openai/",
		".config/io.datasette.llm/keys.json", ".config/wandb/", ".aider.conf.yml", ".continue/config.json", ".continue/.env", ".config/anthropic/", ".anthropic/", ".ollama/id_ed25519", ".cursor/auth.json",
	}, nil},
	{Secret, Home, "chats and mail", []string{
		".config/Slack/", ".slack/credentials.json", "Library/Application Support/Slack/", "AppData/Roaming/Slack/", ".config/discord/", "Library/Application Support/discord/", "AppData/Roaming/discord/",
		".config/Signal/", "Library/Application Support/Signal/", ".config/Element/", ".local/share/TelegramDesktop/", "Library/Application Support/Telegram Desktop/", ".config/Microsoft/Microsoft Teams/",
		".thunderbird/", "Library/Thunderbird/", ".local/share/evolution/", ".config/evolution/", "Library/Mail/", "Library/Messages/", ".weechat/", ".config/weechat/", ".irssi/",
	}, nil},
	{Secret, Home, "passwords and keyrings", []string{
		".password-store/", ".local/share/password-store/", ".local/share/gopass/", ".config/gopass/", ".config/keepassxc/", ".config/KeePass/", ".keepass/", ".config/1Password/", ".1password/",
		".config/Bitwarden/", ".config/Bitwarden CLI/", ".config/bitwarden/", ".local/share/bitwarden/", ".lastpass/", ".local/share/lpass/", ".config/lpass/", ".config/rbw/", ".local/share/rbw/", ".config/Authy Desktop/",
		"Library/Keychains/", ".local/share/keyrings/", ".local/share/kwalletd/", "keyrings/", "Keychains/", "kwallet/", "kwalletd/", ".pki/", ".java/.userPrefs/",
		"AppData/Roaming/Microsoft/Protect/", "AppData/Roaming/Microsoft/Vault/", "AppData/Local/Microsoft/Vault/", "AppData/Roaming/Microsoft/Credentials/", "AppData/Local/Microsoft/Credentials/",
		"Library/Application Support/com.apple.TCC/", "Library/Group Containers/", "Library/Application Support/Bitwarden/", "Library/Application Support/1Password/",
	}, nil},
	{Secret, Home, "browser profiles", []string{
		".mozilla/", ".config/google-chrome*", ".config/chromium/", ".config/BraveSoftware/", ".config/microsoft-edge*", ".config/vivaldi*", ".config/opera*", ".librewolf/", ".waterfox/", ".zen/", ".config/zen/",
		"Library/Safari/", "Library/Cookies/", "Library/Application Support/Google/Chrome*", "Library/Application Support/Chromium/", "Library/Application Support/Firefox/",
		"Library/Application Support/BraveSoftware/", "Library/Application Support/Microsoft Edge*", "Library/Application Support/Arc/", "Library/Application Support/Vivaldi/",
		"AppData/Local/Google/Chrome*", "AppData/Local/Microsoft/Edge*", "AppData/Local/BraveSoftware/", "AppData/Local/Vivaldi/", "AppData/Roaming/Mozilla/", "AppData/Roaming/Opera Software/",
		"snap/firefox/", "snap/chromium/", "snap/brave/", ".var/app/org.mozilla.firefox/", ".var/app/com.google.Chrome/", ".var/app/org.chromium.Chromium/", ".var/app/com.brave.Browser/",
		".local/share/epiphany/", ".cache/mozilla/", ".cache/google-chrome*", ".cache/chromium/",
	}, nil},
	{Secret, Home, "wallets", []string{
		".bitcoin/", ".ethereum/", ".litecoin/", ".dogecoin/", ".monero/", ".bitmonero/", ".zcash/", ".electrum/", ".electron-cash/", ".config/Exodus/", ".config/atomic/", ".config/Ledger Live/", ".config/solana/", ".sui/", ".aptos/",
		".foundry/keystores/", ".brownie/accounts/", ".near-credentials/", ".cardano/", ".lnd/", "Library/Application Support/Bitcoin/", "Library/Application Support/Ethereum/", "Library/Application Support/Exodus/", "Library/Application Support/Electrum/",
	}, nil},
	{Secret, Home, "histories of shells and programs", []string{
		".*_history", ".lesshst", ".viminfo", ".histfile", ".zhistory", ".zsh_sessions/", ".bash_sessions/", ".local/share/fish/fish_history", "fish_history", ".local/share/atuin/", ".local/share/mc/history",
		".local/state/*history", ".irb-history", ".octave_hist", ".wget-hsts", "consolehost_history.txt", ".python_history*", ".local/share/nvim/shada/", ".local/state/nvim/shada/",
	}, nil},
	{Secret, Anywhere, "settings of an environment", []string{".env*", "*.env"}, samples},
	{Secret, Anywhere, keyFiles, []string{
		"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.kdb", "*.ppk", "*.keychain", "*.keychain-db", "*.agekey", "*.p8", "*.ovpn", "*.keytab", "*.bcfks", "*.snk", "*.mobileprovision",
	}, nil},
	{Secret, Anywhere, "private keys", []string{"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_xmss*"}, []string{"*.pub"}},
	{Secret, Anywhere, "state of infrastructure, with its passwords", []string{"*.tfstate", "*.tfstate.*", "*.auto.tfvars", "terraform.tfvars", "*.tfvars", "*.tfvars.json", ".pulumi/stacks/"}, samples},
	{Secret, Anywhere, "a password of Ansible Vault", []string{".vault_pass*", ".vault-pass*", "vault_pass*", "vault-pass*", ".vault_password*", ".vault-password*", "vault_password*", ".vault-token"}, sources},
	{Secret, Anywhere, "an account of a service", []string{
		"service-account*.json", "service_account*.json", "serviceaccount*.json", "*-service-account.json", "gcp-key*.json", "gcloud-key*.json", "client_secret*.json", "firebase-adminsdk*.json", "*-firebase-adminsdk-*.json",
		"application_default_credentials.json", "kubeconfig", "kubeconfig.*", "*.kubeconfig", "publishsettings", "*.publishsettings", "rclone.conf", "wp-config.php", "google-services.json",
	}, samples},
	{Secret, Anywhere, "a key, token or password", []string{
		"api_key.*", "api_keys.*", "api-key.*", "api-keys.*", "apikey.*", "apikeys.*", "*_api_key.txt", "*-api-key.txt", "*_token.txt", "*-token.txt", "token.txt", "tokens.json", "*.token",
		"access_token.*", "password.txt", "passwords.*", "passwd.txt", "private_key.*", "private-key.*", ".htpasswd", ".pgpass", ".netrc", "_netrc",
	}, sources},
	{Secret, Anywhere, "a secret, by its name", []string{"*secret*", "*credential*"}, sources},
}

var protectedGroups = []group{
	{Protected, Anywhere, "repository of git, with its settings and hooks", []string{".git/", "git~1/"}, nil},
	{Protected, Anywhere, "repository of git without a working tree", []string{"*.git/config", "*.git/hooks/", "*.git/info/attributes", "*.git/modules/", "*.git/objects/info/alternates"}, nil},
	{Protected, Anywhere, "hooks and settings of git", []string{
		".gitmodules", ".gitconfig", ".husky/", ".githooks/", ".git-hooks/", ".lefthook/", "lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml", "lefthook-local.yml", ".lefthook-local.yml",
		".pre-commit-config.yaml", ".pre-commit-hooks.yaml", ".overcommit.yml", ".lintstagedrc*", ".simple-git-hooks.*",
	}, nil},
	{Protected, Home, "hooks and settings of git", []string{".config/git/"}, nil},
	{Protected, Anywhere, "run on entering a directory", []string{".envrc", ".envrc.*", ".mise.toml", "mise.toml", ".mise/", ".rtx.toml", ".autoenv", ".autoenv.zsh"}, nil},
	{Protected, Anywhere, "settings and tasks of editors", []string{
		".vscode/", ".idea/", ".zed/", ".fleet/", ".nova/", ".devcontainer/", ".devcontainer.json", "*.code-workspace", ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el",
		".sublime-project", "*.sublime-project", ".editorconfig.js", ".helix/", ".gdbinit", ".lldbinit",
	}, nil},
	{Protected, Anywhere, "settings of package managers and build tools that run programs", []string{
		".cargo/config", ".cargo/config.toml", ".yarnrc", ".yarnrc.yml", ".yarn/releases/", ".yarn/plugins/", ".npmrc", ".pnpmfile.cjs", ".pnpmfile.mjs", ".bunfig.toml", "bunfig.toml", ".mvn/", ".bundle/config", ".pip.conf",
		".bazelrc", ".buckconfig", ".pythonrc*", "sitecustomize.py", "usercustomize.py", ".Rprofile", ".irbrc", ".pryrc", ".iex.exs", ".sbtopts", ".jvmopts", ".noderc", ".node_repl", ".perltidyrc.pl",
	}, nil},
	{Protected, Anywhere, "instructions, tools and settings of agents", []string{
		".agent/", ".agents/", ".mcp.json", "mcp.json", ".claude/", ".claude.json", ".codex/", ".gemini/", ".cursor/", ".cursorrules", ".cursorignore", ".windsurf/", ".windsurfrules", ".continue/", ".cline/", ".clinerules*", ".roo/", ".roomodes", ".roorules*",
		".kilocode/", ".kilocodemodes", ".opencode/", "opencode.json", "opencode.jsonc", ".amazonq/", ".kiro/", ".qwen/", ".crush/", "crush.json", ".crush.json", ".goose/", ".goosehints", ".aider*", ".augment/", ".junie/", ".trae/", ".factory/", ".amp/", ".warp/", ".openhands/", ".rules", ".replit",
		"AGENTS.md", "AGENTS.*.md", "AGENT.md", "CLAUDE.md", "CLAUDE.*.md", "GEMINI.md", "QWEN.md", "CRUSH.md", "WARP.md", ".github/copilot-instructions.md", ".github/instructions/", ".github/prompts/", ".github/chatmodes/", ".github/agents/",
	}, nil},
	{Protected, Home, "instructions, tools and settings of agents", []string{".config/agent/", ".config/opencode/", ".config/goose/", ".config/crush/"}, nil},
	{Protected, Anywhere, "start-up files of shells", []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
		".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".xserverrc", ".pam_environment", ".screenrc", ".tmux.conf", "Microsoft.PowerShell_profile.ps1", "profile.ps1", ".oh-my-zsh/",
	}, nil},
	{Protected, Home, "start-up files of shells and desktops", []string{
		".config/fish/", ".config/autostart/", ".config/systemd/", ".config/environment.d/", ".config/powershell/", ".config/direnv/", ".config/tmux/", ".config/nvim/", ".config/plasma-workspace/", ".config/bash/", ".config/zsh/", ".config/nushell/", ".config/mise/",
		".local/share/systemd/", ".local/share/applications/", ".local/bin/", "Library/LaunchAgents/", "Library/LaunchDaemons/", "LaunchAgents/", "LaunchDaemons/", "AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Startup/",
	}, nil},
	{Protected, System, "start-up files of the system", []string{
		"etc/profile*", "etc/bash*", "etc/zsh*", "etc/cron*", "etc/environment", "etc/agent/", "etc/systemd/", "etc/ld.so.preload", "etc/ld.so.conf*", "etc/init.d/", "etc/rc.local", "etc/pam.d/", "etc/gitconfig", "var/spool/cron/",
	}, nil},
}
