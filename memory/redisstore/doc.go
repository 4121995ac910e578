// Package redisstore holds the state of agents in Redis 7.0 or later, or Valkey 8: one server, a Sentinel set, or a cluster.
//
// Every transaction is one script on one server, because all keys of an agent carry it in braces; leases and expiry compare
// the server's clock. The keys, and how to read them with redis-cli, are described in doc/redis.md.
package redisstore
