// Package web is the bundled plugin that fetches web pages and asks search engines.
// Pages are untrusted and parsed in the plugin's process, which has no access to
// files, programs or the environment.
//
// # Restrictions
//
// Only http and https URLs without credentials are fetched, and only from public
// addresses: not from the machine itself, the local network, the metadata
// services of clouds, or any address that maps to one of them (IPv4 in IPv6,
// NAT64). Names are resolved once and the checked address is dialled, so that
// the connection cannot go to another one (DNS rebinding).
//
// Permission is given per host. A redirect to another host is reported, not
// followed, so that the next call asks for that host.
//
// A [Search] goes only to the address of its engine, which the user configured, with
// the key of that engine.
package web
