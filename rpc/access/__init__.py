"""Access control of connections and calls: credentials, tokens, origins, proxies and admission."""
