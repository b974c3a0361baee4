// What a token allows, so that the page offers nothing else. The daemon checks it again.

// rightsOf returns a function that reports whether a token has a scope, from the
// response of GET /auth/self.
export function rightsOf(self) {
  const scopes = self?.scopes ?? [];
  const admin = scopes.includes('admin');
  const limited = Array.isArray(self?.containers) && self.containers.length > 0;
  return {
    has: (scope) => admin || scopes.includes(scope),
    // node reports whether the token may do what concerns the whole node.
    node: (scope) => !limited && (admin || scopes.includes(scope)),
    limited,
    scopes,
  };
}
