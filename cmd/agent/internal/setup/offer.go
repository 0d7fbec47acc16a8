package setup

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model/credential"
)

// loginTime is the time limit for another program to print a token. az and gcloud
// are slow to start.
const loginTime = 5 * time.Second

// Offer is a provider that was found and can be used at once.
type Offer struct {
	Name    string // PROVIDER/MODEL; just the provider if the model is unknown
	Found   string // what was found
	Answers []config.Flag
	Missing []string // keys of settings that the user must still enter
}

// Offers finds the providers that can be used: those whose key is in the
// environment, model servers on this machine, and programs of cloud services
// that are signed in. It may take a few seconds.
func (d *Draft) Offers(ctx context.Context, servers []KnownServer) []Offer {
	var keys, local, logins []Offer
	for _, k := range d.ProviderKinds() {
		if from := d.Loaded.Source(d.Setting(k, "apiKey")); from.Layer == config.LayerEnv {
			keys = append(keys, d.offer(from.Where+" is set", Answer("providers.default", k.Name))...)
		}
	}
	var looking sync.WaitGroup
	looking.Go(func() { local = d.localOffers(ctx, servers) })
	looking.Go(func() { logins = d.logins(ctx) })
	looking.Wait()
	return slices.Concat(keys, local, slices.DeleteFunc(logins, func(o Offer) bool {
		return slices.ContainsFunc(keys, func(k Offer) bool { return k.Name == o.Name })
	}))
}

// offer returns the offer of the provider that the answers choose, with its default
// model; none if they are invalid.
func (d *Draft) offer(found string, answers ...config.Flag) []Offer {
	try := *d
	if err := try.Take(answers...); err != nil {
		return nil
	}
	k, err := try.Kind()
	if err != nil {
		return nil
	}
	v := k.Values(&try.Settings.Providers)
	o := Offer{Name: strings.TrimSuffix(k.Name+"/"+v.Model, "/"), Found: found, Answers: answers}
	if v.BaseURL == "" {
		o.Missing = append(o.Missing, try.Setting(k, "baseUrl"))
	}
	if v.Model == "" {
		o.Missing = append(o.Missing, try.Setting(k, "model"))
	}
	if g := try.Settings.Providers.Gemini; k.Name == "gemini" && g.UseVertexAI && g.Project == "" {
		o.Missing = append(o.Missing, "providers.gemini.project")
	}
	return []Offer{o}
}

// localOffers returns the models of the servers on this machine.
func (d *Draft) localOffers(ctx context.Context, servers []KnownServer) (out []Offer) {
	for _, server := range FindLocalServers(ctx, servers) {
		name, answers := "local", []config.Flag{Answer("providers.local.baseUrl", server.URL)}
		for _, k := range d.ProviderKinds() {
			if k.Local && k.Preset && k.Values(&d.Settings.Providers).BaseURL == server.URL {
				name, answers = k.Name, nil
			}
		}
		answers = append(answers, Answer("providers.default", name))
		for _, m := range server.models {
			if strings.Contains(strings.ToLower(m), "embed") {
				continue // it cannot chat
			}
			out = append(out, Offer{
				Name: name + "/" + m, Found: "at " + server.URL,
				Answers: append(slices.Clone(answers), Answer("providers."+name+".model", m)),
			})
		}
	}
	return out
}

// logins returns the providers for which another program is signed in.
func (d *Draft) logins(ctx context.Context) []Offer {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	programs := []struct {
		provider, found string
		keeps           string // the file that the program has when it is signed in; empty if unknown
		token           credential.Token
	}{
		{"github", "gh is signed in", "", credential.GitHub(d.env)},
		{"azure", "az is signed in", filepath.Join(cmp.Or(d.env("AZURE_CONFIG_DIR"), filepath.Join(d.UserHome, ".azure")), "azureProfile.json"), credential.Azure(d.env, azureResource)},
		{"gemini", "gcloud is signed in", d.googleCredentials(), credential.Google(d.env)},
	}
	found := make([][]Offer, len(programs))
	var asking sync.WaitGroup
	for i, p := range programs {
		if _, err := os.Stat(p.keeps); err != nil && p.keeps != "" {
			continue // starting it takes a second or more
		}
		asking.Go(func() {
			if _, err := p.token(ctx); err != nil {
				return // it is not installed, or not signed in
			}
			answers := []config.Flag{Answer("providers.default", p.provider)}
			if p.provider == "gemini" {
				answers = append(answers, Answer("providers.gemini.useVertexai", true))
				if project, err := credential.GoogleProject(ctx, d.env); err == nil && d.Settings.Providers.Gemini.Project == "" {
					answers = append(answers, Answer("providers.gemini.project", project))
				}
			}
			found[i] = d.offer(p.found, answers...)
		})
	}
	asking.Wait()
	return slices.Concat(found...)
}

// googleCredentials returns where gcloud keeps its application default credentials.
func (d *Draft) googleCredentials() string {
	dir := filepath.Join(d.UserHome, ".config", "gcloud")
	if appData := d.env("APPDATA"); appData != "" {
		dir = filepath.Join(appData, "gcloud")
	}
	return cmp.Or(d.env("GOOGLE_APPLICATION_CREDENTIALS"), filepath.Join(cmp.Or(d.env("CLOUDSDK_CONFIG"), dir), "application_default_credentials.json"))
}

// Chosen reports whether a provider was chosen, in settings, variables or flags.
func (s *Setup) Chosen() bool {
	for _, key := range []string{"providers.default", "providers.local.baseUrl", "providers.local.model"} {
		if s.Loaded.Source(key).Layer > config.LayerDefault {
			return true
		}
	}
	return s.Settings.Providers.Default != "local"
}
