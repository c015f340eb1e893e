// Names of the browser that the checker doesn't know.
interface Window { trustedTypes?: any }
