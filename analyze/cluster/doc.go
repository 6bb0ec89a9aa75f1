// Package cluster holds what is known of the cluster, and says from it what an address is: a Pod's, a node's, a
// Service's, or none of the cluster's.
//
// In come bytes and flags: the ranges and addresses that a person states, the objects that kubectl prints, the
// interfaces that ip prints. Out come roles, each with the sentence that says where it is from; links by interface
// index; and warnings about what in the facts is contradictory, stale or missing. A Facts is built once by New and never
// changes, so it may be asked from any number of goroutines.
//
// What an address is, strongest first:
//
//  1. An exact address: --node-ip, status.addresses of a Node, the address of a hostNetwork Pod or of a Pod's host, then
//     a Pod's own address, a Service's, an address of one of the node's interfaces, and last the address that a Pod which
//     has ended once had. So a hostNetwork Pod is the node, and a bridge whose address lies in the Pod range is the node.
//  2. The longest range. A range of one address (/32, /128) is an exact statement. One range given for two different
//     things (nodes and Pods in one subnet) says neither.
//  3. The network address and the first host address of a Pod range belong, by custom and not by rule, to the node's
//     tunnel and bridge (host-local IPAM's default gateway, flannel's flannel.1): a range alone calls them neither Pod nor
//     node. They are unknown, with the fact that says why and what would settle it; either guess could turn into evidence.
//  4. "Other" needs something to be other than: a known Pod range and known nodes of the address's family, and no running
//     Pod of the file outside the known ranges. Else unknown.
//
// Deliberately absent: no files are opened, no clock is read (a snapshot's age is the caller's to judge; PodsAt gives
// start times), and nothing is escaped: names are as the files give them, and whoever prints them escapes them.
package cluster
