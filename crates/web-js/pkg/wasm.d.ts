/** The address of the WebAssembly file, where the bundler is configured to copy it. Pass it to `start`
 *  as `module`. */
declare const url: string;
export default url;
