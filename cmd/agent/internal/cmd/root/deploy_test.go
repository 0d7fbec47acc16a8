package root

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
)

func deployed(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(docs(filepath.Join("deploy", name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// strict decodes a document of YAML, and refuses what the type lacks.
func strict(t *testing.T, name string, d *yaml.Decoder, into any) {
	t.Helper()
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// validCommand parses the arguments of the agent.
func validCommand(t *testing.T, where string, args []string) {
	t.Helper()
	if len(args) == 0 {
		t.Errorf("%s: no command", where)
		return
	}
	if err := parses(args); err != nil {
		t.Errorf("%s: agent %s: %v", where, strings.Join(args, " "), err)
	}
}

func validSettings(t *testing.T, where string, data []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(config.LoadOptions{Home: filepath.Dir(file), Cwd: t.TempDir(), SettingsFile: file}); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

// flagValue returns the value of a flag in a command line, "" without it.
func flagValue(args []string, flag string) string {
	for i, a := range args {
		if value, is := strings.CutPrefix(a, flag+"="); is {
			return value
		}
		if a == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// composeFile is what our compose file may have.
type composeFile struct {
	Name     string
	Agent    composeService `yaml:"x-agent"`
	Services map[string]composeService
	Volumes  map[string]struct{}
}

type composeService struct {
	Image       string
	Build       struct{ Context, Dockerfile string }
	Command     []string
	Restart     string
	DependsOn   []string `yaml:"depends_on"`
	EnvFile     []string `yaml:"env_file"`
	Environment map[string]string
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	PidsLimit   int      `yaml:"pids_limit"`
	MemLimit    string   `yaml:"mem_limit"`
	Ports       []string
	Volumes     []string
	Healthcheck struct {
		Test     []string
		Interval string
	}
}

// TestDeployCompose: the compose file is about services, files, volumes and commands that
// exist, and agrees with the image.
func TestDeployCompose(t *testing.T) {
	var f composeFile
	strict(t, "compose.yaml", yaml.NewDecoder(bytes.NewReader(deployed(t, "compose/compose.yaml"))), &f)
	for name, s := range f.Services {
		for _, other := range s.DependsOn {
			if _, ok := f.Services[other]; !ok {
				t.Errorf("%s depends on %s", name, other)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, ".") {
				deployed(t, filepath.Join("compose", from))
			} else if _, ok := f.Volumes[from]; !ok {
				t.Errorf("%s has volume %s, which is not declared", name, from)
			}
		}
		if name == "nats" {
			continue
		}
		validCommand(t, "compose: "+name, s.Command)
		mounted(t, name, s.Command, strings.Join(s.Volumes, "\n"))
		if test := s.Healthcheck.Test; len(test) > 0 {
			validCommand(t, "compose: health of "+name, test[2:])
		}
		if !slices.Contains(s.CapDrop, "ALL") || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Environment["AGENT_NATS_URL"] == "" {
			t.Errorf("%s: %+v", name, s)
		}
		if _, err := os.Stat(filepath.Join(docs("deploy/compose"), s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Error(err)
		}
	}
	serve := f.Services["serve"]
	_, port, _ := strings.Cut(flagValue(serve.Command, "--listen"), ":")
	if len(serve.Ports) != 1 || serve.Ports[0] != "127.0.0.1:"+port+":"+port {
		t.Errorf("serve listens at port %s, and %q are published", port, serve.Ports)
	}
	conf := string(deployed(t, "compose/nats.conf"))
	for _, want := range []string{"sync_interval: always", "default_max_consumers: -1", "max_payload: 8MB", "store_dir: /data", "password: $NATS_PASSWORD"} {
		if !strings.Contains(conf, want) {
			t.Errorf("nats.conf lacks %s", want)
		}
	}
	validSettings(t, "compose/settings.json", deployed(t, "compose/settings.json"))
	image := string(deployed(t, "Dockerfile"))
	for _, want := range []string{`ENTRYPOINT ["/usr/bin/agent"]`, "COPY --from=build /agent /usr/bin/agent", "ENV HOME=/var/lib/agent", "USER 10001:10001", "--uid 10001", "/var/lib/agent/work"} {
		if !strings.Contains(image, want) {
			t.Errorf("Dockerfile lacks %s", want)
		}
	}
}

// mounted checks that the paths of a command are on volumes.
func mounted(t *testing.T, name string, args []string, mounts string) {
	t.Helper()
	if work := flagValue(args, "--work-dir"); !strings.Contains(mounts, work) {
		t.Errorf("%s: --work-dir %s is on no volume", name, work)
	}
	for _, flag := range []string{"--settings", "--tls-cert", "--tls-key"} {
		file := flagValue(args, flag)
		if file != "" && !strings.Contains(mounts, file) && !strings.Contains(mounts, filepath.Dir(file)) {
			t.Errorf("%s: %s %s is on no volume", name, flag, file)
		}
	}
}

// The types below are what our manifests may have of those of Kubernetes.
type (
	manifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct {
			Name, Namespace string
			Labels          map[string]string
		}
		Data          map[string]string
		MountsNoToken *bool     `yaml:"automountServiceAccountToken"`
		Spec          yaml.Node // of its kind
	}
	selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	claim struct {
		Modes     []string `yaml:"accessModes"`
		Resources resources
	}
	resources     struct{ Requests, Limits map[string]string }
	kubernetesSet struct {
		ServiceName string `yaml:"serviceName"`
		Replicas    int
		Selector    selector
		Template    struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
		Claims []struct {
			Metadata struct{ Name string }
			Spec     claim
		} `yaml:"volumeClaimTemplates"`
	}
	pod struct {
		Account  string `yaml:"serviceAccountName"`
		Token    *bool  `yaml:"automountServiceAccountToken"`
		Grace    int    `yaml:"terminationGracePeriodSeconds"`
		Security struct {
			NonRoot bool                  `yaml:"runAsNonRoot"`
			User    int                   `yaml:"runAsUser"`
			Group   int                   `yaml:"runAsGroup"`
			FSGroup int                   `yaml:"fsGroup"`
			Change  string                `yaml:"fsGroupChangePolicy"`
			Seccomp struct{ Type string } `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		Containers []container
		Volumes    []struct {
			Name  string
			Empty *struct{}              `yaml:"emptyDir"`
			Map   *struct{ Name string } `yaml:"configMap"`
			Claim *struct {
				ClaimName string `yaml:"claimName"`
			} `yaml:"persistentVolumeClaim"`
			Secret *struct {
				Name string `yaml:"secretName"`
				Mode int    `yaml:"defaultMode"`
			}
		}
	}
	container struct {
		Name, Image string
		Args        []string
		Env         []struct {
			Name, Value string
			From        struct {
				Secret struct{ Name, Key string } `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		}
		EnvFrom []struct {
			Secret struct{ Name string } `yaml:"secretRef"`
		} `yaml:"envFrom"`
		Ports []struct {
			Name string
			Port int `yaml:"containerPort"`
		}
		Ready     probe `yaml:"readinessProbe"`
		Live      probe `yaml:"livenessProbe"`
		Resources resources
		Security  struct {
			Escalation   *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities struct{ Drop []string }
		} `yaml:"securityContext"`
		Mounts []struct {
			Name     string
			Path     string `yaml:"mountPath"`
			ReadOnly bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	probe struct {
		Get struct {
			Path, Port, Scheme string
			Headers            []struct{ Name, Value string } `yaml:"httpHeaders"`
		} `yaml:"httpGet"`
		Failures int `yaml:"failureThreshold"`
	}
	service struct {
		Selector map[string]string
		Ports    []struct {
			Name       string
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
	}
	port struct {
		Port     int
		Protocol string
	}
	peer struct {
		Pods  selector `yaml:"podSelector"`
		Space selector `yaml:"namespaceSelector"`
		Block struct {
			CIDR   string
			Except []string
		} `yaml:"ipBlock"`
	}
	policy struct {
		Pods    selector `yaml:"podSelector"`
		Types   []string `yaml:"policyTypes"`
		Ingress []struct {
			From  []peer
			Ports []port
		}
		Egress []struct {
			To    []peer
			Ports []port
		}
	}
)

// spec decodes the spec of a manifest, strictly.
func (m manifest) spec(t *testing.T, into any) {
	t.Helper()
	text, err := yaml.Marshal(&m.Spec)
	if err != nil {
		t.Fatal(err)
	}
	strict(t, m.Kind+" "+m.Metadata.Name, yaml.NewDecoder(bytes.NewReader(text)), into)
}

// TestDeployKubernetes: the manifests have only known fields, refer to each other, run as
// little as is possible, and their commands are valid.
func TestDeployKubernetes(t *testing.T) {
	d := yaml.NewDecoder(bytes.NewReader(deployed(t, "kubernetes/agent.yaml")))
	apis := map[string]string{
		"Namespace": "v1", "ServiceAccount": "v1", "ConfigMap": "v1", "PersistentVolumeClaim": "v1", "Service": "v1",
		"StatefulSet": "apps/v1", "Deployment": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1",
	}
	all := map[string]manifest{}
	for {
		var m manifest
		d.KnownFields(true)
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if apis[m.Kind] != m.APIVersion || m.Kind != "Namespace" && m.Metadata.Namespace != "agent" {
			t.Errorf("%s %s of %s in namespace %q", m.Kind, m.Metadata.Name, m.APIVersion, m.Metadata.Namespace)
		}
		all[m.Kind+"/"+m.Metadata.Name] = m
	}
	validSettings(t, "agent-settings", []byte(all["ConfigMap/agent-settings"].Data["settings.json"]))
	all["PersistentVolumeClaim/agent-work"].spec(t, new(claim))
	var serve, worker kubernetesSet
	all["StatefulSet/agent-serve"].spec(t, &serve)
	all["Deployment/agent-worker"].spec(t, &worker)
	for name, set := range map[string]kubernetesSet{"serve": serve, "worker": worker} {
		set.check(t, name, all)
	}
	c := serve.Template.Spec.Containers[0]
	var s service
	all["Service/agent"].spec(t, &s)
	if serve.ServiceName != "agent" || !hasAll(s.Selector, serve.Template.Metadata.Labels) || s.Ports[0].TargetPort != c.Ports[0].Name {
		t.Errorf("the service: %+v", s)
	}
	listen := flagValue(c.Args, "--listen")
	for _, p := range []probe{c.Ready, c.Live} {
		if listen != fmt.Sprintf("0.0.0.0:%d", c.Ports[0].Port) || p.Get.Port != c.Ports[0].Name || p.Get.Scheme != "HTTPS" || !slices.Contains(c.Args, "--host="+p.Get.Headers[0].Value) {
			t.Errorf("listening at %s, ports %+v, probe %+v", listen, c.Ports, p)
		}
	}
	for _, name := range []string{"agent", "nats"} {
		var p policy
		all["NetworkPolicy/"+name].spec(t, &p)
		if p.Pods.MatchLabels["app.kubernetes.io/name"] != name || !slices.Contains(p.Types, "Ingress") || len(p.Ingress) == 0 {
			t.Errorf("policy %s: %+v", name, p)
		}
		if name == "agent" && p.Ingress[0].Ports[0].Port != c.Ports[0].Port {
			t.Errorf("policy %s: %+v", name, p)
		}
	}
}

// hasAll reports whether labels have all of the wanted ones.
func hasAll(want, labels map[string]string) bool {
	for k, v := range want {
		if labels[k] != v {
			return false
		}
	}
	return len(want) > 0
}

// check checks one set of pods, and what they refer to.
func (set kubernetesSet) check(t *testing.T, name string, all map[string]manifest) {
	t.Helper()
	p := set.Template.Spec
	c := p.Containers[0]
	validCommand(t, "kubernetes: "+name, c.Args)
	volumes := map[string]bool{}
	for _, v := range set.Claims {
		volumes[v.Metadata.Name] = true
	}
	for _, v := range p.Volumes {
		volumes[v.Name] = true
		if v.Map != nil && all["ConfigMap/"+v.Map.Name].Kind == "" || v.Claim != nil && all["PersistentVolumeClaim/"+v.Claim.ClaimName].Kind == "" {
			t.Errorf("%s: volume %s refers to nothing", name, v.Name)
		}
	}
	var paths []string
	for _, m := range c.Mounts {
		if !volumes[m.Name] {
			t.Errorf("%s mounts %s, which is no volume", name, m.Name)
		}
		paths = append(paths, m.Path)
	}
	mounted(t, name, c.Args, strings.Join(paths, "\n"))
	account := all["ServiceAccount/"+p.Account].MountsNoToken
	if account == nil || *account || p.Token == nil || *p.Token {
		t.Errorf("%s gets a token of Kubernetes", name)
	}
	s := c.Security
	if !p.Security.NonRoot || p.Security.User != 10001 || p.Security.Seccomp.Type != "RuntimeDefault" || s.Escalation == nil || *s.Escalation || !s.ReadOnly || !slices.Contains(s.Capabilities.Drop, "ALL") {
		t.Errorf("%s: %+v, %+v", name, p.Security, s)
	}
	if !hasAll(set.Selector.MatchLabels, set.Template.Metadata.Labels) {
		t.Errorf("%s selects other pods: %+v", name, set.Selector)
	}
}

// TestDeployChart: the values of the chart have the same secret and as many servers as the
// manifests want.
func TestDeployChart(t *testing.T) {
	var v struct {
		Config struct {
			Cluster struct {
				Enabled  bool
				Replicas int
			}
			Jetstream struct {
				Enabled   bool
				FileStore struct{ PVC struct{ Size string } } `yaml:"fileStore"`
				Merge     struct {
					SyncInterval string `yaml:"sync_interval"`
					Limits       struct {
						Consumers int `yaml:"default_max_consumers"`
					}
				}
			}
			Merge struct {
				MaxPayload    string `yaml:"max_payload"`
				Authorization struct {
					Users []struct{ User, Password string }
				}
			}
		}
		Container struct {
			Env map[string]struct {
				From struct {
					Secret struct{ Name, Key string } `yaml:"secretKeyRef"`
				} `yaml:"valueFrom"`
			}
		}
		PodTemplate struct {
			Spread map[string]struct {
				MaxSkew int    `yaml:"maxSkew"`
				When    string `yaml:"whenUnsatisfiable"`
			} `yaml:"topologySpreadConstraints"`
		} `yaml:"podTemplate"`
		Box struct{ Enabled bool } `yaml:"natsBox"`
	}
	strict(t, "nats-values.yaml", yaml.NewDecoder(bytes.NewReader(deployed(t, "kubernetes/nats-values.yaml"))), &v)
	manifests := string(deployed(t, "kubernetes/agent.yaml"))
	secret := v.Container.Env["AGENT_PASSWORD"].From.Secret
	replicas := fmt.Sprintf("--replicas=%d", v.Config.Cluster.Replicas)
	if v.Config.Jetstream.Merge.SyncInterval != "always" || v.Config.Jetstream.Merge.Limits.Consumers != -1 || secret.Name != "agent-nats" || secret.Key != "password" || strings.Count(manifests, replicas) != 2 {
		t.Errorf("%+v", v)
	}
	if n := strings.Count(manifests, "name: "+secret.Name+"\n"); n == 0 {
		t.Errorf("the manifests have another secret than %s", secret.Name)
	}
}

var execStart = regexp.MustCompile(`(?m)^ExecStart=/usr/bin/agent (.*)$`)

// TestDeployUnits: the commands of the units are valid, and systemd takes the units.
func TestDeployUnits(t *testing.T) {
	validSettings(t, "systemd/settings.json", deployed(t, "systemd/settings.json"))
	var files []string
	for _, name := range []string{"agent-serve.service", "agent-worker.service"} {
		unit := deployed(t, "systemd/"+name)
		m := execStart.FindSubmatch(unit)
		if m == nil {
			t.Fatalf("%s has no ExecStart", name)
		}
		args := strings.Fields(string(m[1]))
		validCommand(t, name, args)
		if work := flagValue(args, "--work-dir"); !strings.HasPrefix(work, "/var/lib/agent/") {
			t.Errorf("%s: %s is not below the StateDirectory", name, work)
		}
		for _, want := range []string{"StateDirectory=agent", "NoNewPrivileges=yes", "CapabilityBoundingSet=\n", "ProtectSystem=strict", "User=agent"} {
			if !strings.Contains(string(unit), want) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, bytes.ReplaceAll(unit, []byte("/usr/bin/agent"), []byte(os.Args[0])), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	t.Run("analyze", func(t *testing.T) {
		analyze, err := exec.LookPath("systemd-analyze")
		if err != nil {
			t.Skip("systemd-analyze is not installed")
		}
		out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, files...)...).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("agent-")) {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	})
}
