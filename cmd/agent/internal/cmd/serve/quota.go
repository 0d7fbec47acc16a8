package serve

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service"
)

// quotaFlag are the quotas of tenants, by name; "" is that of all others.
type quotaFlag map[string]service.Quota

// Type implements pflag.Value.
func (*quotaFlag) Type() string { return "quota" }

// String implements pflag.Value.
func (q *quotaFlag) String() string {
	var all []string
	for _, tenant := range slices.Sorted(maps.Keys(*q)) {
		all = append(all, fmt.Sprintf("%s:%+v", tenant, (*q)[tenant]))
	}
	return strings.Join(all, " ")
}

// Set implements pflag.Value.
func (q *quotaFlag) Set(text string) error {
	tenant, bounds, named := strings.Cut(text, ":")
	if !named {
		tenant, bounds = "", text
	} else if err := store.CheckID(tenant); err != nil {
		return fmt.Errorf("tenant: %w", err)
	}
	if _, twice := (*q)[tenant]; twice {
		return fmt.Errorf("there are two quotas of tenant %q: use one, with commas", tenant)
	}
	var quota service.Quota
	for one := range strings.SplitSeq(bounds, ",") {
		if err := setBound(&quota, one); err != nil {
			return err
		}
	}
	if *q == nil {
		*q = quotaFlag{}
	}
	(*q)[tenant] = quota
	return nil
}

// withSettings returns the quotas with those of the settings for other tenants.
func (q quotaFlag) withSettings(set map[string]config.Quota) (quotaFlag, error) {
	all := maps.Clone(q)
	for tenant, quota := range set {
		if tenant == "*" {
			tenant = ""
		} else if err := store.CheckID(tenant); err != nil {
			return nil, fmt.Errorf("service.quotas: %w; \"*\" is for all tenants without an entry", err)
		}
		if _, ok := q[tenant]; !ok {
			if all == nil {
				all = quotaFlag{}
			}
			all[tenant] = service.Quota(quota)
		}
	}
	return all, nil
}

// setBound sets one of the bounds of a quota, once.
func setBound(q *service.Quota, text string) error {
	name, value, _ := strings.Cut(text, "=")
	if name == "cost" {
		cost, err := strconv.ParseFloat(value, 64)
		if err != nil || !(cost > 0) || math.IsInf(cost, 0) || q.CostUSD != 0 {
			return fmt.Errorf("%q: use cost=USD once, with a number above 0", text)
		}
		q.CostUSD = cost
		return nil
	}
	bound := map[string]*int{"sessions": &q.Sessions, "running": &q.Running, "tokens": &q.Tokens}[name]
	if bound == nil {
		return fmt.Errorf("unknown bound %q: use sessions=N, running=N, tokens=N a day or cost=USD a day", name)
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || *bound != 0 {
		return fmt.Errorf("%q: use %s=N once, with a whole number above 0", text, name)
	}
	*bound = n
	return nil
}
