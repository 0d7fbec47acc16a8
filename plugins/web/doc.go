// Package web is the bundled plugin that fetches pages of the web. Pages are
// foreign bytes, which are parsed in the plugin's own process: it has no file to
// read, no program to start, and nothing in its environment.
//
// # What is not fetched
//
// Only http and https, without credentials in the URL, and only addresses that
// are public: not the machine itself, the local network, the metadata services of
// clouds, nor anything that stands for one of them (IPv4 in IPv6, NAT64). Names
// are resolved once and what was checked is dialled, so that a name cannot mean
// one address to the check and another to the connection.
//
// Permission is given for a host. A redirect to another one is not followed but
// told, so that the next call asks for that host.
package web
